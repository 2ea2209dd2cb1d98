/** By what rollouts of a run are counted apart. */
import type { Entry } from "../../../view/index.ts";

/** What rollouts can have in common: `task`, `policy`, `harness`, or `label:<name>`. */
export function keyBy(by: string): (entry: Entry) => string {
  if (by === "task") return ({ task_id }) => task_id ?? unknown;
  if (by === "harness") return ({ harness }) => harness ?? unknown;
  if (by === "policy") return ({ policies }) => policies.map(policyName).join(", ") || unknown;
  const name = by.slice("label:".length);
  return ({ labels }) => (Object.hasOwn(labels, name) ? (labels[name] ?? unknown) : unknown);
}

const unknown = "unknown";

function policyName({ version, step }: Entry["policies"][number]): string {
  return step === null ? version : `${version}, step ${step}`;
}
