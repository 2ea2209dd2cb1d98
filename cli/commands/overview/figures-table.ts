/** Figures by policy step for a person: a line a step, then why some are unknown, then the pass ratio by data source. */
import { type Figure, type StepFigures, stepFigures } from "../../../service/figures/index.ts";
import { table } from "../../../view/text/index.ts";

export function figuresTable(steps: readonly StepFigures[]): string {
  if (steps.length === 0) return "no results yet";
  const titles = stepFigures.map(({ name }) => name.replace(/_ratio$/, "").replaceAll("_", " "));
  const rows = steps.map((step) => [nameOf(step), step.results, ...stepFigures.map(({ name }) => shown(step.figures[name]))]);
  return [table(["step", "results", ...titles], rows), ...unknownOf(steps), ...bySource(steps)].join("\n");
}

/** Why a figure is unknown, where no step has it. */
function unknownOf(steps: readonly StepFigures[]): string[] {
  return stepFigures.flatMap(({ name, unknown }) =>
    steps.every(({ figures }) => figures[name].value === null) ? [`  ${name} is unknown: ${unknown}`] : [],
  );
}

/** Where the tasks name data sources. */
function bySource(steps: readonly StepFigures[]): string[] {
  const rows = steps.flatMap((step) =>
    step.pass_by_source.map(({ data_source, ...figure }) => [nameOf(step), data_source, figure.whole, shown(figure)]),
  );
  const left = steps.reduce((sum, step) => sum + step.sources_left_out, 0);
  if (rows.every(([, source]) => source === null)) return [];
  return ["", table(["step", "data source", "rewards", "pass"], rows), ...(left > 0 ? [`  ${left} rewards of further sources`] : [])];
}

const nameOf = ({ policy_step }: StepFigures): string => (policy_step === null ? "unknown" : String(policy_step));
const shown = ({ value }: Figure): number | null => (value === null ? null : Number(value.toFixed(3)));
