/**
 * Runs a task's test command in the sandbox that grades. A sealed runner gets the hidden tests that are code over stdin,
 * so that they lie nowhere on the disk. Where the work runs apart, tests and work are processes of two users: neither can
 * see into the other, and only what crosses their socket is compared. Neither is the user who owns the files: the work
 * changes nothing that the tests load later.
 */
import { randomBytes } from "node:crypto";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { withinTime } from "../../base/host/within-time.ts";
import type { ExecOptions, ExecResult, Sandbox } from "../../sandboxes/index.ts";
import { envInside } from "../../sandboxes/index.ts";
import type { GradeContext } from "../grader.ts";
import type { ReportParser } from "../parsers/report-parser.ts";
import { addedPaths, changedPaths } from "../work/work.ts";
import { runnerKit } from "./runner-files.ts";

/** Runner and report live outside the workdir: no file of the work can stand in their place. */
const runnerFolder = "/home/agent/.alidade-grader";
export const reportFolder = "/home/agent/.alidade-report";

/** The work's process ends by itself when the tests are done; one that does not is ended. */
const workEndMs = 2_000;

export type TestRun = {
  parser: ReportParser;
  command: string[];
  hidden: TreeFile[];
  apart: boolean;
};

/** Which of the hidden tests are handed to the runner; the others lie in the workdir. */
export function handedOver({ parser, hidden, apart }: Pick<TestRun, "parser" | "hidden" | "apart">): TreeFile[] {
  const { code, hidesWhereApart } = parser;
  if (hidesWhereApart) return apart ? hidden : [];
  return code === undefined ? [] : hidden.filter(({ path }) => code.test(path));
}

export async function runTests(run: TestRun, key: string, sandbox: Sandbox, context: Omit<GradeContext, "fresh">): Promise<ExecResult> {
  const { parser, apart } = run;
  const folder = `${sandbox.path("/home/agent")}${runnerFolder.slice("/home/agent".length)}`;
  const kit = runnerKit(parser);
  if (parser.runner !== null) await sandbox.writeFiles(await kit.files(parser.runner), runnerFolder);
  // The folder is there before the command: a report writer need not make one.
  if (parser.source === "file") await sandbox.writeFiles([{ path: ".keep", content: Buffer.alloc(0), mode: 0o644 }], reportFolder);
  const runner = parser.runner === null ? "" : `${folder}/${kit.pathOf(parser.runner)}`;
  const report = `${sandbox.path("/home/agent")}${reportFolder.slice("/home/agent".length)}/report.xml`;
  const argv = run.command.flatMap((word) =>
    word === "{runner}" ? [...kit.options, runner] : word.replaceAll("{runner}", runner).replaceAll("{report}", report),
  );
  const socket = apart ? `${sandbox.path("/tmp")}/.alidade-${randomBytes(4).toString("hex")}` : null;
  const { task, signal } = context;
  const options: ExecOptions = {
    user: apart ? "judge" : "agent",
    ...(apart && { programs: "outside" }),
    env: envInside(task.environment, sandbox),
    stdin: parser.sealed ? inputOf(run, key, socket, context) : "",
    timeout_ms: task.limits.grade_seconds * 1_000,
    max_output_bytes: task.limits.output_bytes,
    // A report on stdout begins with the runner's own word that it was started; of other output people want the end.
    keep_output: parser.source === "file" ? "end" : "start",
    signal,
  };
  if (socket === null) return sandbox.exec(argv, options);
  await keepFromWriting(sandbox, task.environment.workdir, signal);
  const at = run.command.indexOf("{runner}");
  const interpreter = at < 1 ? [kit.interpreter] : run.command.slice(0, at);
  const host = [...interpreter, ...kit.options, `${folder}/${kit.pathOf(kit.workHost)}`, socket];
  return besideTheWork(sandbox, host, options, () => sandbox.exec(argv, options));
}

/** The agent may have shut its files to other users, or opened them. What belongs to the image's own users stays as it is. */
async function keepFromWriting(sandbox: Sandbox, workdir: string, signal: AbortSignal): Promise<void> {
  const argv = ["sh", "-c", 'chmod -R a+rX,go-w "$0" 2>/dev/null || true', sandbox.path(workdir)];
  await sandbox.exec(argv, { programs: "outside", signal, timeout_ms: 60_000 });
}

/** Runs the tests while the work's process is there to answer them. */
async function besideTheWork(
  sandbox: Sandbox,
  host: string[],
  options: ExecOptions,
  tests: () => Promise<ExecResult>,
): Promise<ExecResult> {
  const over = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, over.signal]) : over.signal;
  // What becomes of the work's process is no failure of the grading: tests that ask it then fail.
  const work = sandbox.exec(host, { ...options, user: "work", stdin: "", keep_output: "end", signal }).catch(() => null);
  try {
    const result = await tests();
    await withinTime(work, workEndMs);
    over.abort();
    const ended = await work;
    return { ...result, stderr: `${result.stderr}${ended?.stdout ?? ""}${ended?.stderr ?? ""}` };
  } finally {
    over.abort();
    await work;
  }
}

function inputOf(run: TestRun, key: string, socket: string | null, { work, task }: Pick<GradeContext, "work" | "task">): string {
  const { parser, hidden } = run;
  const tests = new Set(hidden.map(({ path }) => path));
  const notOurs = (path: string) => !tests.has(path);
  const { workdir } = task.environment;
  const { encoding } = runnerKit(parser);
  const memory = Object.fromEntries(handedOver(run).map(({ path, content }) => [path, content.toString(encoding)]));
  const paths = { added: addedPaths(work, workdir).filter(notOurs), changed: changedPaths(work, workdir).filter(notOurs) };
  return `${key}\n${JSON.stringify({ ...paths, memory, socket })}\n`;
}
