/** A session for the terminal. */
import type { RolloutRecord } from "../base/schema/rollout.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import {
  blockLabels,
  describeBranch,
  describeDifference,
  describeEdge,
  describeFidelity,
  describeRepeated,
  describeSession,
  describeTokens,
  describeTrace,
  spanWidth,
  spanWords,
} from "./describe.ts";
import { describeRecord } from "./describe-verdict.ts";
import {
  type BlockView,
  type BranchView,
  type SessionView,
  type SpanView,
  type TraceView,
  type TurnView,
  toSessionView,
} from "./session-view.ts";
import { shortened, visibleText } from "./text/visible-text.ts";

export type TextOptions = {
  /** Do not shorten prompts and tool results. */
  full?: boolean;
  /** The rollout's record; null where there is none. */
  record?: RolloutRecord | null;
  /** ANSI colours, for a terminal. */
  color?: boolean;
};

export function renderText(trajectory: Trajectory, options: TextOptions = {}): string {
  const view = toSessionView(trajectory);
  const ink = options.color ? inked : plain;
  const sections = [
    table(describeSession(view), ink),
    options.record ? `${ink.title("Why")}\n${table(describeRecord(options.record), ink)}` : "",
    ...view.turns.map((turn) => renderTurn(turn, options, ink)),
    `${ink.title("Tree")}\n${view.branches.map((branch) => renderBranch(branch, ink)).join("\n")}`,
    renderTraces(view, ink),
    `${ink.title("Fidelity")}\n${table(describeFidelity(view), ink)}`,
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

type Ink = { title: (text: string) => string; faint: (text: string) => string; alert: (text: string) => string };

const plain: Ink = { title: (text) => text, faint: (text) => text, alert: (text) => text };
const inked: Ink = {
  title: (text) => `\u001b[1m${text}\u001b[0m`,
  faint: (text) => `\u001b[2m${text}\u001b[0m`,
  alert: (text) => `\u001b[33m${text}\u001b[0m`,
};

function table(rows: [string, string][], ink: Ink): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${ink.faint(visibleText(name).padEnd(width))}  ${hung(value, width + 4)}`).join("\n");
}

/** Further lines of foreign text are indented, so that none looks like a line of ours. */
function hung(text: string, indent: number): string {
  return visibleText(text).replaceAll("\n", `\n${" ".repeat(indent)}`);
}

function renderTurn(turn: TurnView, options: TextOptions, ink: Ink): string {
  const { call } = turn;
  const what = [call.agent, call.request_class === "main" ? "" : call.request_class, call.outcome, call.finish_reason ?? ""];
  const head = `Turn ${turn.number}  ${visibleText(what.filter((word) => word !== "").join(", "))}`;
  const edge = `  ${describeEdge(turn)}; ${describeTokens(turn.tokens)}`;
  const lines = [ink.title(head), call.match === "exact" || call.match === "root" ? ink.faint(edge) : ink.alert(edge)];
  if (call.error !== null) lines.push(ink.alert(`  error ${hung(`${call.error.code}: ${call.error.message}`, indent)}`));
  const repeated = describeRepeated(turn);
  if (repeated !== "") lines.push(ink.faint(`  (${repeated})`));
  for (const block of [...turn.added, ...turn.output]) lines.push(renderBlock(block, options, ink));
  return lines.join("\n");
}

/** Wide enough for the longest label, and two spaces. */
const indent = 11;

function renderBlock({ kind, detail, text, error }: BlockView, options: TextOptions, ink: Ink): string {
  // Readers come for the model's output; prompts and results are often long.
  const limit = kind === "assistant" || kind === "tool_call" ? { lines: 60, characters: 4000 } : { lines: 8, characters: 600 };
  const shown = visibleText(options.full ? text : shortened(text, limit));
  const body = (detail === "" ? shown : `${visibleText(detail)} ${shown}`).trimEnd().replaceAll("\n", `\n${" ".repeat(indent + 2)}`);
  const label = `  ${blockLabels[kind].padEnd(indent)}`;
  return `${error ? ink.alert(label) : ink.faint(label)}${kind === "reasoning" ? ink.faint(body) : body}`;
}

/** One run of turns a line, hung by lines of the tree on the one that it branched from. */
function renderBranch(branch: BranchView, ink: Ink): string {
  const { turns, lasts, follows } = branch;
  const [first] = turns as [TurnView];
  const run = turns.length === 1 ? `turn ${first.number}` : `turns ${turns.map((turn) => turn.number).join(" → ")}`;
  const bar = (isLast: boolean) => (isLast ? "   " : "│  ");
  const below = lasts.slice(1).map(bar).join("");
  const stem = follows ? below : lasts.slice(1, -1).map(bar).join("");
  const hook = follows ? "↳ " : lasts.length === 1 ? "" : lasts.at(-1) ? "└─ " : "├─ ";
  const isClean = first.call.match === "exact" || first.call.match === "root";
  const edge = isClean ? describeEdge(first) : ink.alert(describeEdge(first));
  const lines = [`  ${stem}${hook}${run}: ${edge}; ${visibleText(describeBranch(branch))}`];
  const difference = describeDifference(first);
  if (difference === null) return lines.join("\n");
  const quote = (text: string) => JSON.stringify(visibleText(text.slice(0, 80)));
  const pad = `  ${below}    `;
  for (const text of [`before: ${quote(difference.before)}`, `now:    ${quote(difference.now)}`]) lines.push(ink.faint(`${pad}${text}`));
  return lines.join("\n");
}

const marks: Record<SpanView["kind"], string> = { prompt: "·", observation: "-", trainable: "█", forced: "▒", excluded: "x" };

function renderTraces({ traces }: SessionView, ink: Ink): string {
  if (traces.length === 0) return "";
  const signs = Object.entries(spanWords).map(([kind, word]) => `${marks[kind as SpanView["kind"]]} ${word}`);
  const legend = ink.faint(`  ${signs.join("  ")}; widths are logarithmic`);
  return [ink.title("Traces"), legend, ...traces.map(renderTrace)].join("\n");
}

/** Cells of one strip: two lines of a usual terminal, then it is cut. */
const stripCells = 140;

function renderTrace(trace: TraceView): string {
  const strip = trace.spans.map((span) => marks[span.kind].repeat(spanWidth(span.tokens))).join("");
  const shown = strip.length <= stripCells ? strip : `${strip.slice(0, stripCells)}…`;
  return `  ${visibleText(describeTrace(trace))}\n    ${shown}`;
}
