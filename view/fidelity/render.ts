/** A fidelity summary for a person: where the tokens went, then each cause with an example and what to do about it. */

import { edgeCauses, uncountedReasons } from "../../base/schema/reasons/calls.ts";
import { meaningOf } from "../../base/schema/reasons/meaning.ts";
import { routingReasons } from "../../base/schema/reasons/routing.ts";
import { supportReasons } from "../../base/schema/reasons/support.ts";
import { teacherReasons } from "../../base/schema/reasons/teacher.ts";
import { untrainedReasons } from "../../base/schema/reasons/untrained.ts";
import { described } from "../../base/statistics/attempt-tally.ts";
import { describedPrompts } from "../../exporters/source/index.ts";
import { describeOmitted, type RoutingFidelity, type SupportFidelity } from "../../reconstruct/index.ts";
import { visibleText } from "../text/visible-text.ts";
import type { CauseSummary, FidelitySummary, TeacherSummary } from "./summary.ts";

export function renderSummary(summary: FidelitySummary): string {
  const { rollouts, attempts, in_loss, ends, calls, rows, dummy_rows, tokens, row_inflation, tolerant, matches, outcomes } = summary;
  const lines = [
    `${number(rollouts)} rollouts${attempts > rollouts ? ` in ${number(attempts)} attempts` : ""} (${number(in_loss)} in the loss), ${number(calls)} calls: ${list(outcomes)}`,
    ...(Object.keys(ends.masked).length > 0 ? [described(ends)] : []),
    ...(summary.damaged > 0 ? [`${number(summary.damaged)} rollouts are not counted: their records are damaged`] : []),
    ...ends.alarms.map((alarm) => `ALARM: ${visibleText(alarm)}`),
    ...summary.different_prompts.map((task) => visibleText(describedPrompts(task))),
    `${number(tokens.sampled)} sampled tokens, ${number(tokens.trained)} trained${share(tokens.trained, tokens.sampled)}`,
    ...(tokens.replayed > 0 ? [`${number(tokens.replayed)} tokens more were replayed: rollouts that were forked sampled them`] : []),
    ...Object.entries(tokens.excluded)
      .sort(([, a], [, b]) => b - a)
      .map(([reason, excluded]) => `  ${number(excluded)} not trained: ${words(reason)}${meaningOf(untrainedReasons, reason)}`),
    ...Object.entries(tokens.uncounted).map(
      ([reason, calls]) =>
        `  ${number(calls)} ${calls === 1 ? "call" : "calls"} sampled an unknown number of tokens more: ${words(reason)}${meaningOf(uncountedReasons, reason)}`,
    ),
    `${number(rows)} rows${dummy_rows > 0 ? ` (${number(dummy_rows)} of them dummies)` : ""}${inflation(row_inflation)}: ${number(tokens.row_tokens)} tokens to compute for ${number(tokens.tree_tokens)} in the trees`,
  ];
  if (Object.keys(tokens.by_class).length > 0) lines.push(`left out by the kind of call: ${list(tokens.by_class)}`);
  if (tolerant.rows < rows) lines.push(`  ${number(tolerant.rows)} rows${inflation(tolerant.row_inflation)} with \`--select tolerant\``);
  lines.push(`edges: ${list(matches)}`);
  if (Object.keys(summary.continuity).length > 0) lines.push(`prompts: ${list(summary.continuity)}`);
  lines.push(...renderRouting(summary.routing));
  lines.push(...renderSupport(summary.support));
  for (const teacher of summary.teachers) lines.push(...renderTeacher(teacher));
  const leftOut = describeOmitted(summary.omitted);
  if (leftOut !== null) lines.push(visibleText(leftOut));
  const causes = summary.causes.map((cause) => renderCause(cause, calls));
  return [lines.join("\n"), causes.length === 0 ? "No context parts from the one before it." : "Why contexts part", ...causes].join("\n\n");
}

/** Returns no lines if no model has experts. */
function renderRouting({ calls, sampled_tokens, recorded_tokens, missing, rows, routed_rows }: RoutingFidelity): string[] {
  if (calls === 0) return [];
  const unrouted = Object.values(missing).reduce((sum, count) => sum + count, 0);
  return [
    `experts: which ones were taken is on record for ${number(recorded_tokens)} of ${number(sampled_tokens)} sampled tokens${share(recorded_tokens, sampled_tokens)}; ${number(routed_rows)} of ${number(rows)} rows have them for every token`,
    ...Object.entries(missing).map(
      ([reason, count]) =>
        `  ${number(count)} ${count === 1 ? "call" : "calls"} without: ${words(reason)}${meaningOf(routingReasons, reason)}`,
    ),
    ...(unrouted === 0
      ? []
      : [
          "  there the trainer picks experts again, so its ratio differs from 1 even for sound tokens: give tokens less weight by it, or reject them (`--trainer-logprobs` shows how far they are off)",
        ]),
  ];
}

/** Returns no lines if nothing was cut. */
function renderSupport({ calls, sampled_tokens, recorded_tokens, missing }: SupportFidelity): string[] {
  if (calls === 0) return [];
  return [
    `kept tokens: ${number(calls)} ${calls === 1 ? "call" : "calls"} sampled with \`top_p\`, \`top_k\` or \`min_p\`; which tokens these kept is on record for ${number(recorded_tokens)} of ${number(sampled_tokens)} sampled tokens${share(recorded_tokens, sampled_tokens)}`,
    ...Object.entries(missing).map(
      ([reason, count]) =>
        `  ${number(count)} ${count === 1 ? "call" : "calls"} without: ${words(reason)}${meaningOf(supportReasons, reason)}`,
    ),
    ...(recorded_tokens === 0
      ? []
      : ["  they can be trained by a trainer that renormalises over them: `export --format verifiers`, or `flat --kept-sets train`"]),
  ];
}

function renderTeacher({ model, rollouts, sampled_tokens, scored_tokens, unscored, compared_tokens, gap }: TeacherSummary): string[] {
  const mean = compared_tokens === 0 ? "" : `; the recorded logprob less its own is ${(gap / compared_tokens).toFixed(4)} nats in the mean`;
  return [
    `teacher: ${visibleText(model)} scored ${number(scored_tokens)} of ${number(sampled_tokens)} sampled tokens of ${number(rollouts)} rollouts${mean}`,
    ...Object.entries(unscored).map(
      ([reason, tokens]) => `  ${number(tokens)} not scored: ${words(reason)}${meaningOf(teacherReasons, reason)}`,
    ),
  ];
}

function renderCause({ cause, calls, repeated_tokens, example }: CauseSummary, all: number): string {
  const { what, cure } = edgeCauses[cause];
  const at = example.position === null ? "" : `, token ${number(example.position)}`;
  const lines = [
    `${number(calls)} × ${words(cause)}, in ${Math.round((100 * calls) / all)} % of the calls: ${what}`,
    `  for example ${visibleText(example.rollout)}, turn ${example.turn}${at}`,
  ];
  if (cause !== "retokenised" && example.before !== null) lines.push(`    before: ${quote(example.before)}`);
  if (cause !== "retokenised" && example.now !== null) lines.push(`    now:    ${quote(example.now)}`);
  if (repeated_tokens > 0) lines.push(`  ${number(repeated_tokens)} tokens before these branches are computed again`);
  lines.push(`  → ${cure}`);
  return lines.join("\n");
}

const number = (value: number): string => value.toLocaleString("en");
const words = (name: string): string => name.replaceAll("_", " ");
const quote = (text: string): string => JSON.stringify(visibleText(text.slice(0, 80)));
const share = (part: number, whole: number): string => (whole === 0 ? "" : ` (${Math.round((100 * part) / whole)} %)`);
const inflation = (value: number | null): string => (value === null ? "" : `, row inflation ${value.toFixed(2)}`);

function list(counts: Record<string, number>): string {
  const named = Object.entries(counts).map(([name, value]) => `${number(value)} ${words(name)}`);
  return named.length === 0 ? "none" : named.join(", ");
}
