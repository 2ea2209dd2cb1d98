/** An exception that no step awaits, in a real `run` and a real `service`: it ends the rollout that it comes from, and no other is lost. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readRollouts } from "../../rollouts/index.ts";
import { ServiceClient } from "../../service/index.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { type CliResult, cliProcess, jsonOf, startCli } from "../fakes/processes/cli.ts";
import { runFile, solve } from "../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("strays");
const grader = join(import.meta.dirname, "../fakes/rollouts/stray-grader.ts");
/** Several starts of the command line, on a machine with other work. */
const timeout = 300_000;

type Does = "right" | "throws" | "nameless";

/** A run of three right tasks and a stray one between them, two at once. */
async function placeFor(t: TestContext, name: Does) {
  const place = join(scratch, `${name}-${t.name.length}`);
  const mended = join(place, "mended");
  await mkdir(join(place, "tasks"), { recursive: true });
  const taskOf = (task_id: string, does: Does) => ({
    task_id,
    instruction: `Make done.txt for ${task_id}.`,
    limits: { agent_seconds: 60, grade_seconds: 60, memory_mb: 256, disk_mb: 64 },
    grader: { kind: "stray", does, mended },
  });
  const tasks = [taskOf("a", "right"), taskOf("b", name), taskOf("c", "right"), taskOf("d", "right")];
  for (const task of tasks) {
    await mkdir(join(place, "tasks", task.task_id));
    await writeFile(join(place, "tasks", task.task_id, "task.yaml"), JSON.stringify(task));
  }
  const engine = await ScriptedEngine.start(solve);
  t.after(() => engine[Symbol.asyncDispose]());
  const more = `graders: [${JSON.stringify(grader)}]\nconcurrency: 2\nmax_null_share: 1\n`;
  await writeFile(join(place, "run.yaml"), runFile({ engine: engine.url, more }).replace("samples: 2", "samples: 1"));
  return { place, mended, tasks };
}

async function endsOf(path: string): Promise<string[]> {
  const last = new Map((await readRollouts(path)).map((record) => [record.task_id, record]));
  return [...last.values()].map(({ task_id, verdict, error }) => `${task_id} ${verdict?.reward ?? error?.code}`).sort();
}

const run = (place: string, ...args: string[]): Promise<CliResult> => cliProcess(["run", ...args], { cwd: place });

test("run: what a callback of one rollout throws ends that one, with the stack on record, and the others are graded", {
  timeout,
}, async (t) => {
  const { place } = await placeFor(t, "throws");
  const ran = await run(place, "tasks", "-c", "run.yaml", "--out", place, "--json");
  const { run: path } = jsonOf<{ run: string }>(ran);
  assert.deepEqual([ran.code, await endsOf(path)], [1, ["a 1", "b internal", "c 1", "d 1"]], ran.stderr);
  const [crash] = (await readFile(join(path, "deaths", "crashes.jsonl"), "utf8")).split("\n");
  assert.match(crash ?? "", /-b-0#1".*the grader's callback threw.*stray-grader\.ts:\d+/);
  const record = (await readRollouts(path)).find(({ task_id }) => task_id === "b");
  assert.match(
    record?.error?.message ?? "",
    /^an exception that no step awaited ended this rollout: the grader's callback threw \(its stack is in /,
  );
});

test("run: a rollout that ends the process is set aside after two deaths, siblings are not, and the flag runs it again", {
  timeout,
}, async (t) => {
  const { place, mended } = await placeFor(t, "nameless");
  let ran = await run(place, "tasks", "-c", "run.yaml", "--out", place, "--json");
  const path = join(place, /"?([\w-]+)-b-0/.exec(await recordsText(place))?.[1] ?? "");
  let deaths = 0;
  for (; ran.code === 1 && !ran.stdout.includes("{"); deaths++) ran = await run(place, "--resume", path, "--json");
  assert.ok(deaths === 1 || deaths === 2, `${deaths} deaths`);
  assert.deepEqual(await endsOf(path), ["a 1", "b rollout_set_aside", "c 1", "d 1"], ran.stderr);
  const aside = (await readRollouts(path)).findLast(({ task_id }) => task_id === "b");
  assert.match(
    aside?.error?.message ?? "",
    /^the process ended .*a plug-in's own timer threw\)\. It is set aside; `--resume <run> --retry-set-aside` runs it again$/,
  );
  assert.equal((await run(place, "--resume", path, "--json")).code, 1, "it stays set aside");
  await writeFile(mended, "");
  const again = await run(place, "--resume", path, "--retry-set-aside", "--json");
  assert.deepEqual([again.code, await endsOf(path)], [0, ["a 1", "b 1", "c 1", "d 1"]], again.stderr);
});

async function recordsText(place: string): Promise<string> {
  const { globSync } = await import("node:fs");
  const [file = ""] = globSync("*/rollouts.jsonl", { cwd: place });
  return readFile(join(place, file), "utf8");
}

test("service: a rollout that ends the process is set aside after two deaths, and its siblings come to their end", {
  timeout,
}, async (t) => {
  const { place, tasks } = await placeFor(t, "nameless");
  const start = async () => {
    const running = startCli(["service", "-c", "run.yaml", "-p", "0", "--json", "--out", place], { cwd: place });
    t.after(() => running[Symbol.asyncDispose]());
    await running.until(() => running.stdout.includes("\n"));
    return running;
  };
  let service = await start();
  await using client = ServiceClient.of(join(place, "service"));
  const set = await client.set("s", { samples: 1, retries: 0 });
  await set.submit(tasks.map((task) => ({ group_key: task.task_id, task })));
  await set.drain();
  const ends = new Map<string, string>();
  let isOver = false;
  const reading = (async () => {
    for await (const { result } of set.results()) ends.set(result.group_key, String(result.reward ?? result.error?.code));
    isOver = true;
  })();
  let deaths = 0;
  for (; ; service = await start()) {
    await Promise.race([reading, service.ended]);
    if (isOver) break;
    assert.equal((await service.ended).code, 1);
    assert.ok(++deaths <= 2, `${deaths} deaths: ${service.stderr}`);
  }
  assert.ok(deaths > 0);
  assert.deepEqual(Object.fromEntries(ends), { a: "1", b: "rollout_set_aside", c: "1", d: "1" });
  assert.equal((await service.kill("SIGTERM")).code, 0);
});
