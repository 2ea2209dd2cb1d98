/** Why a work earned what it did: the verdict's evidence and the harness's last words, as name and value. */
import { z } from "zod";
import type { NetworkUse } from "../base/schema/network.ts";
import { describeRefusal } from "../base/schema/refused-hosts.ts";
import type { RolloutRecord, UserEnd, UserRecord, Verdict } from "../base/schema/rollout.ts";

/** What is shown of the graders' evidence; each grader gives what it has, plug-ins something else. */
const Evidence = z.looseObject({
  required: z.number().nullish().catch(null),
  failed_count: z.number().nullish().catch(null),
  failed: z
    .array(z.looseObject({ name: z.string(), outcome: z.string() }))
    .nullish()
    .catch(null),
  report_problem: z.string().nullish().catch(null),
  exit_code: z.number().nullish().catch(null),
  out_of_memory: z.boolean().nullish().catch(null),
  kept_processes: z.boolean().nullish().catch(null),
  no_change: z.boolean().nullish().catch(null),
  added: z.array(z.string()).nullish().catch(null),
  modified: z.array(z.string()).nullish().catch(null),
  deleted: z.array(z.string()).nullish().catch(null),
  output_tail: z.string().nullish().catch(null),
});

const mostNames = 20;
const lastLines = 30;

export function describeVerdict(verdict: Verdict): [string, string][] {
  const { status, tier, grader, error } = verdict;
  const evidence = Evidence.parse(verdict.evidence);
  const { failed, failed_count, required } = evidence;
  const more = (failed_count ?? 0) - Math.min(mostNames, failed?.length ?? 0);
  const names = (failed ?? []).slice(0, mostNames).map(({ name, outcome }) => `${name}: ${outcome}`);
  const rows: [string, string | null][] = [
    ["verdict", `${status}, by ${grader} at ${tier}`],
    ["processes", evidence.kept_processes ? "those of the agent lived while its work was graded (keep_processes)" : null],
    ["error", error && `${error.code}: ${error.message}`],
    ["tests", required == null ? null : countedTests(required, failed_count ?? 0)],
    ["not passed", names.length === 0 ? null : [...names, ...(more > 0 ? [`and ${more} more`] : [])].join("\n")],
    ["report", evidence.report_problem ?? null],
    ["grading's exit code", evidence.exit_code == null ? null : exitWords(evidence.exit_code, failed_count ?? 0)],
    ["memory", evidence.out_of_memory ? "a process of the grading was killed for memory" : null],
    ["work", changesOf(evidence)],
    ["output ends", endOf(evidence.output_tail) ?? ((failed_count ?? 0) > 0 ? noMessages : null)],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== null);
}

const noMessages =
  "No output is on record: the report holds only names and outcomes of tests. To read what a failed test says, run the task's tests on the work.";

function exitWords(code: number, failed: number): string {
  return code === 0 && failed > 0 ? "0, of the command that ran the tests; the verdict comes from its report" : String(code);
}

/** Describes the verdict in one sentence, which answers a reader's first question. null: the verdict says only its reward. */
export function whyVerdict({ reward, status, error, evidence, components }: Verdict): string | null {
  const { failed, failed_count, required, report_problem, no_change } = Evidence.parse(evidence);
  if (error !== null) return `${error.code.replaceAll("_", " ")}: ${error.message}`;
  if ((failed_count ?? 0) > 0) {
    const names = (failed ?? []).slice(0, mostNames).map(({ name }) => name);
    const more = (failed_count ?? 0) - names.length;
    const of = required == null ? `${failed_count}` : `${failed_count} of ${required} required`;
    return `${of} tests failed${names.length === 0 ? "" : `: ${names.join(", ")}`}${more > 0 && names.length > 0 ? ` and ${more} more` : ""}`;
  }
  if (report_problem != null) return `the report of the tests: ${report_problem}`;
  if (no_change && reward !== 1) return "nothing was changed";
  if (required != null) return countedTests(required, 0);
  const values = Object.entries(components).map(([name, { value }]) => `${name} ${value === null ? "not measured" : value}`);
  if (values.length > 0) return values.slice(0, mostNames).join(", ");
  return status === "graded" ? null : status.replaceAll("_", " ");
}

function countedTests(required: number, failed: number): string {
  if (failed > 0) return `${failed} of ${required} required ones did not pass`;
  return required === 1 ? "the required one passed" : `all ${required} required ones passed`;
}

function changesOf({ added, modified, deleted, no_change }: z.infer<typeof Evidence>): string | null {
  if (no_change) return "nothing was changed";
  const marked = [
    ...(added ?? []).map((path) => `+ ${path}`),
    ...(modified ?? []).map((path) => `~ ${path}`),
    ...(deleted ?? []).map((path) => `- ${path}`),
  ];
  if (marked.length === 0) return null;
  return bounded(marked);
}

/** Its last lines; null where there is nothing. */
function endOf(text: string | null | undefined): string | null {
  const lines = (text ?? "").trimEnd().split("\n");
  return lines.length === 1 && lines[0] === "" ? null : lines.slice(-lastLines).join("\n");
}

/** The same of a rollout's record, with how its harness ended and what it changed. `isShown`: the changes themselves stand beside it. */
export function describeRecord(record: RolloutRecord, isShown = false): [string, string][] {
  const { verdict, error, exit_code, output_tail, work, setup, network } = record;
  const rows: [string, string | null][] = [
    ["rollout's error", error && `${error.code}: ${error.message}`],
    ...(verdict === null ? [] : describeVerdict(verdict)),
    ["user", record.user && describeUser(record.user)],
    ["set-up kept in", setup && blobOf(setup)],
    ["changes kept in", work && `${blobOf(work)}${isShown ? "" : "; --diff prints them"}`],
    ...(network === null ? [] : describeNetwork(network)),
    ["harness's exit code", exit_code === null ? null : String(exit_code)],
    ["harness's last words", endOf(output_tail)],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== null);
}

const userEnds: Record<UserEnd, string> = {
  stop: "it said a stop word",
  max_turns: "it had no messages left (max_turns)",
  context_full: "the conversation no longer fitted its model",
  user_silent: "it said nothing",
  user_refused: "its engine refused the conversation twice, and answered another prompt",
  user_unreadable: "no harness could take what it said",
  agent_silent: "the agent ended its turn without a word",
  agent_too_long: "the agent's message was too long",
  agent_unreadable: "the agent's message could not be written without tokens of a chat template",
};

function describeUser({ session_id, model, turns, sampled_tokens, end }: UserRecord): string {
  const why = end === null ? "" : `; the conversation ended: ${userEnds[end]}`;
  const tokens = sampled_tokens === null ? "an unknown number of" : sampled_tokens.toLocaleString("en");
  return `${model}, ${turns} messages to the agent, ${tokens} tokens sampled${why}; \`alidade show ${session_id}\` prints its side`;
}

function blobOf({ sha256, paths, bytes }: NonNullable<RolloutRecord["work"]>): string {
  return `blobs/${sha256}.tar.gz (${paths} paths, ${bytes.toLocaleString("en")} bytes)`;
}

/** What its sandboxes reached, and what they did not, by name. */
function describeNetwork({ destinations, refusals, left_out }: NetworkUse): [string, string | null][] {
  const reached = destinations.map(({ phase, host, port, connections, sent_bytes, received_bytes }) => {
    const bytes = `${sent_bytes.toLocaleString("en")} bytes out, ${received_bytes.toLocaleString("en")} in`;
    return `${phase} ${host}:${port}, ${connections} ×: ${bytes}`;
  });
  return [
    ["network", reached.length === 0 ? "nothing was reached" : bounded(reached)],
    ["network refused", refusals.length === 0 ? null : bounded(refusals.map(describeRefusal))],
    ["network not listed", left_out === 0 ? null : `${left_out} connections and refusals`],
  ];
}

function bounded(lines: string[]): string {
  return [...lines.slice(0, mostNames), ...(lines.length > mostNames ? [`and ${lines.length - mostNames} more`] : [])].join("\n");
}
