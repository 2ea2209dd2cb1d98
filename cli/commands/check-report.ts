/** What `alidade check` prints: a row a task, and sentences where one was not admitted. */

import type { AdmissionGrading, AdmissionRecord } from "../../base/schema/admission.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import { leaksInWords } from "../../graders/admission/index.ts";
import type { TaskCheck } from "../../rollouts/index.ts";
import { describeVerdict } from "../../view/index.ts";
import { table } from "../../view/text/index.ts";

const words: Record<TaskCheck["outcome"], string> = {
  admitted: "admitted",
  quarantined: "QUARANTINED",
  holds: "holds; not admitted, for no hack was tried",
  fails: "DOES NOT HOLD",
  unfinished: "NOT CHECKED",
};

const columns = ["task", "gold", "no change", "random edit", "hacks", "seconds", "MiB", "tier", "verdict"];

export function checkReport(checks: readonly TaskCheck[]): string {
  return table(columns, checks.map(rowOf));
}

function rowOf({ task_id, record, outcome, reused }: TaskCheck): (string | number | null)[] {
  const verdict = `${words[outcome]}${reused ? " (checked before)" : ""}`;
  if (record === null) return [task_id, null, null, null, null, null, null, null, verdict];
  const of = (work: string) => record.gradings.filter((one) => one.work === work);
  const memory = of("gold").flatMap(({ memory_mb }) => memory_mb ?? []);
  return [
    task_id,
    shown(of("gold")),
    shown(of("no-op")),
    shown(of("random-edit")),
    hacksOf(record),
    Math.round(Math.max(0, ...of("gold").map(({ duration_ms }) => duration_ms)) / 100) / 10,
    memory.length === 0 ? null : Math.max(...memory),
    of("gold")[0]?.tier ?? null,
    verdict,
  ];
}

function shown(gradings: readonly AdmissionGrading[]): string {
  return gradings.map(({ reward, status }) => reward ?? status).join(" ") || "–";
}

/** Random edit and probes come after the others. */
function hacksOf({ gradings, baseline }: AdmissionRecord): string {
  const tried = gradings.filter(isProbe);
  if (tried.length === 0) return "–";
  const paid = tried.filter(({ reward, same_state }) => reward !== null && reward > (baseline ?? 0) && same_state !== true);
  const unmeasured = unmeasuredHacks(gradings).length;
  return `${paid.length} of ${tried.length} pay${unmeasured === 0 ? "" : `, ${unmeasured} without a reward`}`;
}

/** A policy that learns one of these has its failures count nowhere. */
function unmeasuredHacks(gradings: readonly AdmissionGrading[]): AdmissionGrading[] {
  return gradings.filter((one) => isProbe(one) && one.reward === null);
}

function isProbe({ work }: AdmissionGrading): boolean {
  return work !== "gold" && work !== "no-op" && work !== "random-edit";
}

/** With one full stop at its end: some messages are whole sentences. */
const sentence = (message: string): string => `${message.replace(/\.$/, "")}.`;

/** Each reason, and the evidence of the first grading that it is seen in. */
export function whyNot({ task_id, outcome, record, error, verdicts, file }: TaskCheck): string[] {
  if (outcome === "admitted" || outcome === "holds") return [];
  if (record === null)
    return [`\n${task_id} was not checked: ${sentence(error?.message ?? "it was broken off")} The same command goes on with it`];
  const kept = file === null ? [] : [`  The record is ${file}; a task that is mended has another one`];
  const reasons = record.reasons.map(({ code, message }) => `  ${code}: ${message}`);
  const verb = outcome === "quarantined" ? "is quarantined" : "does not hold";
  return [[`\n${task_id} ${verb}:`, ...reasons, ...evidence(record, verdicts), ...kept].join("\n")];
}

/** What decides nothing, and is to be looked at. */
export function notesOn({ task_id, record }: TaskCheck): string[] {
  return [
    ...leakNotes(task_id, record),
    ...reachNotes(task_id, record),
    ...unmeasuredHacks(record?.gradings ?? []).map((one) => unmeasuredNote(task_id, one)),
  ];
}

function unmeasuredNote(task_id: string, { work, language, error }: AdmissionGrading): string {
  const where = language === null ? "" : ` in ${language}`;
  return `\n${task_id}: ${work}${where} earns no reward, so such a failure counts nowhere: ${error ?? "the grader gave no reason"}`;
}

function reachNotes(task_id: string, record: AdmissionRecord | null): string[] {
  if (record?.reach === undefined) return [];
  const { open, sockets, exposed, past_relay } = record.reach;
  const found = [...open, ...sockets].join(", ") || "nothing";
  const beside = exposed.length === 0 ? "" : ` beside what is exposed (${exposed.join(", ")})`;
  const past = { reached: "and reaches tools past the relay", not_reached: "and no tools past the relay", no_port: "" }[past_relay];
  return [`\n${task_id}: a scan from the agent's sandbox finds ${found}${beside}${past && `, ${past}`}`];
}

function leakNotes(task_id: string, record: AdmissionRecord | null): string[] {
  const names = record?.leak_scan?.leaks.filter(({ what }) => what === "names") ?? [];
  return names.length === 0 ? [] : [`\n${task_id}: an agent can read ${leaksInWords(names)}; look whether it should`];
}

/** The verdict on gold or on no change, where that is not as it must be. */
function evidence({ reasons, gradings }: AdmissionRecord, verdicts: readonly Verdict[]): string[] {
  const work = reasons.some(({ code }) => code === "no_change_pays") ? "no-op" : "gold";
  if (!reasons.some(({ code }) => code === "gold_not_full" || code === "no_change_pays" || code === "ungraded" || code === "flaky"))
    return [];
  const best = gradings.findIndex((one) => one.work === work && (work === "no-op" || one.reward !== 1));
  const verdict = verdicts[best];
  if (verdict === undefined) return [];
  const rows = describeVerdict(verdict).map(([name, value]) => `    ${name.padEnd(12)}  ${value.replaceAll("\n", `\n${" ".repeat(18)}`)}`);
  return [`  the grading of ${work === "gold" ? "the known solution" : "no change"}:`, ...rows];
}
