/**
 * Grades by a command of the task's: it sees the work in a fresh sandbox, and in the file `$ALIDADE_ANSWER` what
 * the agent answered last, and prints `{"reward": 0.5, "components": {…}}` as its last line.
 */
import { z } from "zod";
import { messageOf } from "../base/errors.ts";
import { readFolder } from "../base/files/file-tree.ts";
import { readJson } from "../base/schema/read-json.ts";
import type { Verdict } from "../base/schema/rollout.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import type { ExecResult, Sandbox } from "../sandboxes/index.ts";
import { envInside } from "../sandboxes/index.ts";
import { answerOf } from "./answer-of.ts";
import { commandClock } from "./fault/clock.ts";
import type { Grader } from "./grader.ts";
import { ToldComponents, withWeights } from "./rules/told-reward.ts";
import { placeToGrade, tierIn, tierWhere } from "./shared/place-to-grade.ts";
import { placeWork, workEvidence } from "./work/work.ts";

const ScriptSpec = z.strictObject({
  kind: z.literal("script"),
  /** Prints one JSON object `{reward, components?}` as its last line, in a fresh sandbox with the work in place. */
  command: z.array(z.string()).min(1),
  files: z.string().nullable().default(null),
  /** Paths (globs from the workdir) that are put back from the base before it runs, so that edits there do not count. */
  protected: z.array(z.string()).optional(),
});

/** What the last line must be. */
const Line = z.strictObject({ reward: z.number(), components: ToldComponents });

/** For a person; a record must stay readable. */
const evidenceOutput = 4_000;

export const script: Grader<z.infer<typeof ScriptSpec>> = {
  name: "script",
  title: "A command that prints the reward as its last line",
  spec: ScriptSpec,
  folders: ["files"],
  version: "1",
  tier: (_spec, task) => tierWhere(task, "T1"),

  async grade(spec, context) {
    const { task, work, trajectory, signal } = context;
    const started = performance.now();
    const files = spec.files === null ? [] : await readFolder(spec.files);
    await using sandbox = await placeToGrade(context);
    await placeWork(sandbox, task, work, { protected: spec.protected ?? [], over: files }, signal);
    await sandbox.writeFiles(files);
    const result = await sandbox.exec(spec.command, {
      user: "agent",
      env: { ...envInside(task.environment, sandbox), ...(trajectory && (await placeAnswer(trajectory, sandbox))) },
      stdin: "",
      timeout_ms: task.limits.grade_seconds * 1_000,
      max_output_bytes: task.limits.output_bytes,
      // However much the work prints before it, the script's last line is there.
      keep_output: "end",
      signal,
    });
    const { work_sha256, no_change } = workEvidence(work, task);
    const output_tail = (result.stdout + result.stderr).slice(-evidenceOutput);
    const rest = {
      // The script may run the work, and the work may print: their lines look the same here.
      tier: tierIn(sandbox, "T1"),
      isolation: sandbox.facts.isolation,
      grader: "script",
      evidence: {
        work_sha256,
        no_change,
        clock: commandClock(result, task.limits),
        exit_code: result.exit_code,
        dropped_bytes: result.dropped_bytes,
        output_tail,
      },
      duration_ms: performance.now() - started,
    } as const;
    if (result.timed_out)
      return failed(
        rest,
        "grader_timeout",
        `the script was not finished after ${task.limits.grade_seconds} seconds (limits.grade_seconds)`,
      );
    try {
      const { reward, components } = Line.parse(readJson(onlyVerdict(result)));
      return { ...rest, reward, components: withWeights(components), status: "graded", error: null };
    } catch (error) {
      return failed(
        rest,
        "grader_error",
        `the script did not end with one line {"reward": number, "components": {…}}: ${messageOf(error).slice(0, 500)}`,
      );
    }
  },
};

/** Outside the workdir: no file of the work can stand in its place. What the script runs of the work could still change it. */
const answerFolder = ".alidade-answer";

async function placeAnswer(trajectory: Trajectory, sandbox: Sandbox): Promise<Record<string, string>> {
  const content = Buffer.from(answerOf(trajectory) ?? "");
  await sandbox.writeFiles([{ path: "answer.txt", content, mode: 0o644 }], `/home/agent/${answerFolder}`);
  return { ALIDADE_ANSWER: `${sandbox.path("/home/agent")}/${answerFolder}/answer.txt` };
}

function failed(
  rest: Omit<Verdict, "reward" | "components" | "status" | "error">,
  code: "grader_timeout" | "grader_error",
  message: string,
): Verdict {
  return { ...rest, reward: null, components: {}, status: code, error: { code, message, status: null } };
}

/** Shells give a program that a signal ended 128 and the signal's number. */
const bySignal = 128;

/**
 * The last line. What the script runs of the work shares its output: it may end the script and speak in its place, or
 * speak after it. Throws where that is to be seen.
 */
function onlyVerdict({ stdout, exit_code }: ExecResult): string {
  if (exit_code === null || exit_code > bySignal) throw new Error(`a signal ended the script (exit code ${exit_code})`);
  const lines = stdout.trimEnd().split("\n");
  const verdicts = lines.filter(isVerdict).length;
  if (verdicts > 1) throw new Error(`${verdicts} lines have a reward: the script must print one, and no program that it runs any`);
  return lines.at(-1) ?? "";
}

function isVerdict(line: string): boolean {
  if (!/^\s*\{.*\}\s*$/.test(line)) return false;
  try {
    return Object.hasOwn(readJson(line) as object, "reward");
  } catch {
    return false;
  }
}
