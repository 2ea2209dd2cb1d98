/**
 * Polar's evaluators, by their names there, as graders of ours. Both take a patch out of the work by a command of the request
 * and test it: where the repository is another folder than the agent's, the patch is applied there. All of it runs in a fresh
 * sandbox with the work, so nothing of the agent's own sandbox is there but files (tier T1).
 */
import { z } from "zod";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { complaintOf } from "../../base/schema/complaints/complaint.ts";
import { AbsolutePath } from "../../base/schema/environment/absolute-path.ts";
import type { Task } from "../../base/schema/task.ts";
import { fromJsonText, oneCommit, quoted, shell, sweBench } from "../../tasks/swe/index.ts";

const Patch = {
  repo_dir: AbsolutePath.default("/testbed"),
  patch_command: z.string().min(1).optional(),
  apply_timeout: z.number().positive().default(60),
  test_timeout: z.number().positive().default(1_200),
  exclude_patterns: z.array(z.string().min(1)).max(1_000).default([]),
};
type PatchSettings = z.infer<z.ZodObject<typeof Patch>>;

const TestOnOutput = z.strictObject({
  ...Patch,
  test_command: z.string().min(1),
  expected_output_json: fromJsonText(z.record(z.string(), z.string()), "object"),
});

const SweHarness = z.strictObject({ ...Patch, instance: z.record(z.string(), z.unknown()) });

/** What a task of ours gets of an evaluator. `prepare`: lines that come before the request's own. */
export type EvaluatorGrading = {
  grader: object;
  grade_seconds: number;
  environment: Partial<Pick<Task["environment"], "work" | "conceal">>;
  limits: object;
  prepare: string;
};

type Evaluated = { config: Record<string, unknown>; workdir: string; evalPrepare: string };

const evaluators = new Map<string, (evaluated: Evaluated) => EvaluatorGrading>([
  ["test_on_output", testOnOutput],
  ["swebench_harness", sweHarness],
  // An older name of it, which Polar's example of SWE-bench Verified says.
  ["swegym_git_diff", sweHarness],
]);

/** null: it is no evaluator of Polar's with a counterpart here. Throws `request_invalid` naming the field. */
export function gradingOf(strategy: string, evaluated: Evaluated): EvaluatorGrading | null {
  return evaluators.get(strategy)?.(evaluated) ?? null;
}

function testOnOutput({ config, workdir, evalPrepare }: Evaluated): EvaluatorGrading {
  const spec = parsed(TestOnOutput, config);
  const expected = Object.entries(spec.expected_output_json).map(([node, status]) => `${nodeName(node)}\t${status}`);
  const lines = [
    evalPrepare,
    ...patchLines(spec, workdir, `{ echo '{"reward": 0}'; exit; }`),
    `log=$(mktemp)`,
    `{ ${spec.test_command}\n} >"$log" 2>&1`,
    `tail -c 3000 "$log" >&2`,
    `found=$(awk ${quoted(readOutcomes)} "$log" | LC_ALL=C sort)`,
    `if [ -n "$found" ] && [ "$found" = ${quoted(inByteOrder(expected).join("\n"))} ]; then echo '{"reward": 1}'; else echo '{"reward": 0}'; fi`,
  ];
  const grader = { kind: "script", command: shell("bash", lines.join("\n")), protected: [...caches, ...spec.exclude_patterns] };
  return { grader, grade_seconds: secondsOf(spec), environment: { work: workOf(spec, workdir) }, limits: {}, prepare: "" };
}

/** Grades as the row's own task does, though the agent works in another folder than the repository's. */
function sweHarness({ config, workdir, evalPrepare }: Evaluated): EvaluatorGrading {
  const spec = parsed(SweHarness, config);
  const { grader, limits, environment } = rowTask(spec.instance);
  const { command, protected: kept } = z.looseObject({ command: z.array(z.string()), protected: z.array(z.string()) }).parse(grader);
  const lines = [evalPrepare, ...patchLines(spec, workdir, "exit"), command.map(quoted).join(" ")];
  const hidden = [...new Set([workdir, spec.repo_dir])].map((folder) => `(cd ${quoted(folder)}\n${oneCommit}\n)`).join("\n");
  const setup = environment.setup?.command.map(quoted).join(" ");
  return {
    grader: { ...grader, command: shell("bash", lines.join("\n")), protected: [...kept, ...caches, ...spec.exclude_patterns] },
    grade_seconds: secondsOf(spec),
    environment: { work: workOf(spec, workdir), conceal: shell("sh", hidden) },
    limits,
    prepare: setup === undefined ? "" : `(cd ${quoted(spec.repo_dir)}\n${setup}\n)`,
  };
}

function rowTask(instance: Record<string, unknown>): Task {
  try {
    // Rows of other sets read files beside them, and no file of this machine is read for a request.
    return sweBench.toTask(instance, { where: "evaluator.config.instance", folder: "" }) as Task;
  } catch (error) {
    const { message } = asAlidadeError(error, "task_invalid");
    throw refused("instance", message);
  }
}

/** As Polar leaves out of each patch. */
const caches = ["__pycache__/**", "**/__pycache__/**", "**/*.pyc", "**/*.pyo", ".pytest_cache/**", "**/.pytest_cache/**"];

/**
 * Lines after which the repository has the agent's changes. `nothing` is run where there are none, or none that fit. Where the
 * agent worked in the repository itself its files stand there already.
 */
function patchLines({ repo_dir, patch_command, exclude_patterns }: PatchSettings, workdir: string, nothing: string): string[] {
  const command = patch_command ?? `cd ${quoted(repo_dir)} && git diff --binary --submodule=diff`;
  const excluded = [...caches, ...exclude_patterns].map((glob) => `--exclude=${quoted(glob)}`).join(" ");
  return [
    // The files are root's or the agent's, and git reads no other user's repository.
    `export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'`,
    `patch=$(mktemp)`,
    `(\n${command}\n) >"$patch" || exit`,
    `[ -s "$patch" ] || ${nothing}`,
    `cd ${quoted(repo_dir)} || exit`,
    ...(repo_dir === workdir ? [] : [`git apply ${excluded} "$patch" >&2 || ${nothing}`]),
  ];
}

/** Where the repository is another folder, nothing that the agent left there counts. */
function workOf({ repo_dir }: PatchSettings, workdir: string): Task["environment"]["work"] {
  return repo_dir === workdir ? "layer" : [workdir];
}

function secondsOf({ apply_timeout, test_timeout }: PatchSettings): number {
  return apply_timeout + test_timeout;
}

/** Polar's names of tests: the last part of a path in pytest's form, with its class. */
function nodeName(node: string): string {
  const parts = (node.split(" - ")[0] ?? "").split("::");
  return parts.length >= 3 ? parts.slice(-2).join(".") : (parts.at(-1) ?? "");
}

/** Lines `PASSED name` of a log as `name TAB PASSED`, the last one of a name, by the same names. */
const readOutcomes = `{ gsub(/\\033\\[[0-9;]*m|\\r/, ""); sub(/^[ \\t]+/, ""); sub(/[ \\t]+$/, "") }
/^(PASSED|FAILED|ERROR|SKIPPED)/ {
  if (!match($0, /[ \\t]+/)) next
  status = substr($0, 1, RSTART - 1); node = substr($0, RSTART + RLENGTH)
  cut = index(node, " - "); if (cut) node = substr(node, 1, cut - 1)
  parts = split(node, part, "::"); if (parts > 2) node = part[parts - 1] "." part[parts]; else if (parts == 2) node = part[2]
  if (node != "") found[node] = status
}
END { for (node in found) print node "\\t" found[node] }`;

function inByteOrder(lines: readonly string[]): string[] {
  return lines.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}

function parsed<T>(schema: z.ZodType<T>, config: Record<string, unknown>): T {
  const result = schema.safeParse(config);
  if (result.success) return result.data;
  const { path, given, message, unknownKey } = complaintOf(result.error, config);
  throw refused(path.join("."), unknownKey === null ? `is ${given}: ${message}` : "is no field of this evaluator");
}

function refused(field: string, message: string): AlidadeError {
  const param = `evaluator.config.${field}`;
  return new AlidadeError("request_invalid", message.includes(param) ? message : `${param}: ${message}`, { param });
}
