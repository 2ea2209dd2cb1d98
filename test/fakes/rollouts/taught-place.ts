/** Makes a task, a harness of one call, a policy, and a teacher with other weights, for runs and services with a teacher. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { main } from "../../../cli/commands/index.ts";
import { inTerminal } from "../../../cli/commands/terminal.ts";
import { startPracticeEngine } from "../../../practice/start.ts";
import { type Faults, startCountingTeacher } from "../engines/counting-teacher.ts";
import { until } from "../machine/until.ts";
import { terminalSaying } from "../processes/cli.ts";
import { runFile, writeTask } from "./small-task.ts";

const harness = `
const response = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
  method: "POST",
  headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
  body: JSON.stringify({ model: process.env.ALIDADE_MODEL ?? "practice", max_tokens: 8, messages: [{ role: "user", content: process.argv[2] }] }),
});
await response.json();
`;

let folders = 0;

/** Writes a run file for two rollouts of the task. It names no teacher. */
export async function taughtPlace(t: TestContext, scratch: string, faults: Faults = {}) {
  const folder = join(scratch, String(folders++));
  await mkdir(folder, { recursive: true });
  await writeTask(folder, "a");
  await writeFile(join(folder, "harness.mjs"), harness);
  const policy = await startPracticeEngine({ seed: 10 });
  const teacher = await startCountingTeacher({ seed: 11 }, faults);
  t.after(async () => {
    await policy[Symbol.asyncDispose]();
    await teacher[Symbol.asyncDispose]();
  });
  const file = join(folder, "run.yaml");
  const command = ["node", join(folder, "harness.mjs"), "{instruction}"];
  await writeFile(file, runFile({ engine: policy.url, command, tasks: ["a"] }));
  return { folder, file, teacher, out: join(folder, "runs") };
}

/** Starts a service of this run file in this process, until the test ends. */
export async function serviceOf(t: TestContext, { file, out }: { file: string; out: string }): Promise<{ url: string; token: string }> {
  const stop = new AbortController();
  const terminal = terminalSaying({ stop: stop.signal });
  const served = inTerminal(terminal, () => main(["service", "-c", file, "-o", out, "--port", "0"]));
  t.after(async () => {
    stop.abort();
    await served;
  });
  const begins = until(async () => terminal.stderr.text.includes("service on"), { ms: 120_000 });
  await Promise.race([begins, served.then(() => assert.fail(terminal.stderr.text))]);
  return JSON.parse(await readFile(join(out, "service", "service.json"), "utf8")) as { url: string; token: string };
}
