/** The curve of a training as SVG: reward by step, and below it the seconds of each phase, staleness and mismatch. */
import type { TrainedStep } from "./trained-step.ts";

const width = 860;
const left = 72;
const right = 150;
const plot = { top: 46, height: 220 };
const bars = { top: 310, height: 110 };
const phases = [
  { name: "sample", title: "sampling and grading", color: "#0969da" },
  { name: "train", title: "training", color: "#bf8700" },
  { name: "update", title: "new weights", color: "#cf222e" },
] as const;
const taskColors = ["#1a7f37", "#8250df", "#bc4c00", "#0550ae"];

/** Draws a self-contained picture. `title` names the thick line. */
export function drawCurve(steps: readonly TrainedStep[], title: string): string {
  const x = placeOf(steps.length);
  const tasks = Object.keys(steps[0]?.rewards ?? {});
  const parts = [
    ...rewardAxis(),
    ...tasks.map((task, at) => line(steps, x, (step) => step.rewards[task] ?? null, taskColors[at % taskColors.length] as string, 1.2)),
    line(steps, x, (step) => step.reward, "#24292f", 3),
    ...[title, ...tasks].map((name, at) => label(name, at, at === 0 ? "#24292f" : (taskColors[(at - 1) % taskColors.length] as string))),
    ...phaseBars(steps, x),
    ...phases.map(({ title: name, color }, at) => text(width - right + 14, bars.top + 14 + 18 * at, name, color)),
    ...steps.map((step, at) => figures(step, x(at))),
    text(left - 8, bars.top + bars.height + 34, "lag", "#57606a", "end"),
    text(left - 8, bars.top + bars.height + 52, "|ratio−1|", "#57606a", "end"),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${bars.top + bars.height + 64}" font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#ffffff"/>
${parts.join("\n")}
</svg>
`;
}

function placeOf(count: number): (at: number) => number {
  const gap = (width - left - right) / Math.max(1, count);
  return (at) => left + gap * (at + 0.5);
}

function rewardAxis(): string[] {
  return [0, 0.25, 0.5, 0.75, 1].flatMap((share) => {
    const y = heightOf(share);
    return [
      `<line x1="${left}" y1="${y}" x2="${width - right}" y2="${y}" stroke="#d0d7de" stroke-width="1"/>`,
      text(left - 8, y + 4, `${100 * share} %`, "#57606a", "end"),
    ];
  });
}

function heightOf(share: number): number {
  return plot.top + plot.height * (1 - share);
}

/** Interrupts the line at a step without a value. */
function line(
  steps: readonly TrainedStep[],
  x: (at: number) => number,
  value: (step: TrainedStep) => number | null,
  color: string,
  stroke: number,
): string {
  let path = "";
  let draws = false;
  for (const [at, step] of steps.entries()) {
    const share = value(step);
    if (share !== null) path += `${draws ? "L" : "M"}${x(at).toFixed(1)} ${heightOf(share).toFixed(1)}`;
    draws = share !== null;
  }
  return `<path d="${path}" fill="none" stroke="${color}" stroke-width="${stroke}" stroke-linejoin="round"/>`;
}

function label(name: string, at: number, color: string): string {
  return text(width - right + 14, plot.top + 14 + 18 * at, name, color);
}

function phaseBars(steps: readonly TrainedStep[], x: (at: number) => number): string[] {
  const longest = Math.max(1, ...steps.map(({ seconds }) => (seconds.update ?? 0) + seconds.sample + seconds.train));
  const thick = Math.min(40, ((width - left - right) / Math.max(1, steps.length)) * 0.7);
  const rects = steps.flatMap(({ seconds }, at) => {
    let y = bars.top + bars.height;
    return phases.map(({ name, color }) => {
      const tall = (bars.height * (seconds[name] ?? 0)) / longest;
      y -= tall;
      return `<rect x="${(x(at) - thick / 2).toFixed(1)}" y="${y.toFixed(1)}" width="${thick.toFixed(1)}" height="${tall.toFixed(1)}" fill="${color}"/>`;
    });
  });
  return [
    ...rects,
    text(left - 8, bars.top + 10, `${longest.toFixed(0)} s`, "#57606a", "end"),
    text(left - 8, bars.top + bars.height, "0 s", "#57606a", "end"),
  ];
}

function figures({ step, lag, worst_ratio }: TrainedStep, x: number): string {
  const y = bars.top + bars.height;
  return [
    text(x, y + 16, String(step), "#24292f", "middle"),
    text(x, y + 34, lag === null ? "–" : String(lag), "#57606a", "middle"),
    text(x, y + 52, worst_ratio.toExponential(0), "#57606a", "middle"),
  ].join("");
}

function text(x: number, y: number, said: string, color: string, anchor: "start" | "middle" | "end" = "start"): string {
  const escaped = said.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${color}" text-anchor="${anchor}">${escaped}</text>`;
}
