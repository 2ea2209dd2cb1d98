/** What `alidade check` found out about a task: the record that `run --admitted-only` asks for. */
import { z } from "zod";
import { Tier, VerdictStatus } from "./rollout.ts";

export const AdmissionGrading = z.strictObject({
  work: z.string().describe("gold, no-op, random-edit, bad calls and their name, or the name of a hack probe"),
  language: z.string().nullable().describe("of a probe that differs by language"),
  time: z.number().int().positive().describe("which grading of this work it is"),
  reward: z.number().nullable(),
  status: VerdictStatus,
  tier: Tier,
  duration_ms: z.number(),
  memory_mb: z
    .number()
    .nullable()
    .describe("peak of the grader's sandbox with its file cache, of gold; null where the engine tells none, or it was not asked"),
  same_state: z.boolean().optional().describe("of calls of tools: they left the state that the known calls leave, so they may earn"),
  error: z.string().nullable().describe("why there is no reward"),
});
export type AdmissionGrading = z.infer<typeof AdmissionGrading>;

export const Leak = z.strictObject({
  what: z
    .enum(["solution", "tests", "names", "outputs"])
    .describe("lines of the known solution, lines of hidden tests, names of required tests, lines of expected outputs and answers"),
  place: z.string().describe("a path inside the sandbox, or what else an agent can read"),
  found: z.number().int().positive(),
  of: z.number().int().positive(),
});
export type Leak = z.infer<typeof Leak>;

export const LeakScan = z.strictObject({
  leaks: z.array(Leak),
  looked_for: z.number().int().describe("telling lines; 0: the task has none, so nothing was looked for"),
  not_scanned: z.array(z.string()).describe("what was not looked at, with the reason"),
});
export type LeakScan = z.infer<typeof LeakScan>;

export const ReachScan = z.strictObject({
  open: z.array(z.number().int()).describe("ports that listen in the sandbox's network before the agent begins, and no `expose` names"),
  sockets: z.array(z.string()).describe("abstract sockets there"),
  exposed: z.array(z.number().int()).describe("ports that `expose` names"),
  past_relay: z
    .enum(["reached", "not_reached", "no_port"])
    .describe("whether a tool server answers there too; no_port: each is a command's streams"),
});
export type ReachScan = z.infer<typeof ReachScan>;

export const AdmissionReason = z.strictObject({
  code: z.enum([
    "no_solution",
    "shared_grading",
    "gold_not_full",
    "not_apart",
    "needs_processes",
    "no_change_pays",
    "random_edit_pays",
    "ungraded",
    "flaky",
    "hackable",
    "leak",
  ]),
  message: z.string(),
});
export type AdmissionReason = z.infer<typeof AdmissionReason>;

export const AdmissionRecord = z.strictObject({
  task_id: z.string(),
  task_hash: z.string().describe("of the task's content: the same on every machine"),
  version: z.string().describe("of Alidade and of its checks: another one checks again"),
  made: z.string().describe("when, in UTC"),
  backend: z.string(),
  image_digest: z.string().nullable().describe("of the sandbox's image, which a name may leave behind"),
  admitted: z.boolean(),
  reasons: z.array(AdmissionReason).describe("why it is quarantined; [] where it is admitted"),
  times: z.number().int().positive().describe("gradings of gold and of no change, each"),
  baseline: z.number().nullable().describe("reward of no change at all; null where that was not graded"),
  gradings: z.array(AdmissionGrading),
  reach: ReachScan.optional().describe("of a task whose known solution is calls of tools: what an agent's commands reach beside them"),
  leak_scan: LeakScan.nullable().describe("null: an earlier check failed, so it was not made"),
  duration_ms: z.number(),
});
export type AdmissionRecord = z.infer<typeof AdmissionRecord>;
