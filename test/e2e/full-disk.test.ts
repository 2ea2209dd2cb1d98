/** A disk that is really full: nothing acknowledged is lost or torn, calls may be retried, and all goes on when there is space. */
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { RunFolder, readRollouts, readTrajectories } from "../../rollouts/index.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { SmallDisk } from "../fakes/machine/small-disk.ts";
import { cli, jsonOf, startCli } from "../fakes/processes/cli.ts";
import { proxyAt } from "../fakes/proxies/proxy-at.ts";
import { runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("full-disk");

/** More than what is left in the last page of any file. */
const long = "a long text ".repeat(1_000);
const isFull = (error: Error & { code?: string }): boolean =>
  error.code === "store_full" && /no space left to record at/.test(error.message);

test("calls on a full disk get a 503 that may be retried, and the log keeps every whole line and no torn one", async (t) => {
  if (!(await need(t, "mount"))) return;
  await using disk = await SmallDisk.mount();
  await using at = await proxyAt(() => ({ text: "ok" }), { store: new DiskStore(join(disk.path, "sessions")) });
  const client = await at.open({ purpose: "train" });
  await client.say([{ role: "user", content: "before" }]);
  await client.settled();
  const acknowledged = await client.entries();
  disk.fill();
  const bodies = {
    "/v1/chat/completions": { model: "m", messages: [{ role: "user", content: long }] },
    "/v1/responses": { model: "m", input: long },
    "/v1/messages": { model: "m", max_tokens: 9, messages: [{ role: "user", content: long }] },
  };
  for (const [path, body] of Object.entries(bodies)) {
    const response = await client.post(path, body);
    assert.equal(response.status, 503, path);
    assert.equal(response.headers.get("x-should-retry"), null);
    assert.match(await response.text(), /no space left/);
  }
  assert.deepEqual(await client.entries(), acknowledged);
  const file = join(disk.path, "sessions", `${client.sessionId}.jsonl`);
  assert.ok((await readFile(file, "utf8")).endsWith("}\n"), "the half of a line that fitted was cut off again");
  await assert.rejects(at.open(), isFull);
  disk.free();
  for (const [path, body] of Object.entries(bodies)) assert.equal((await client.post(path, body)).status, 200, path);
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.outcome),
    ["delivered", "delivered", "delivered", "delivered"],
  );
  assert.deepEqual(at.unseen, []);
});

test("a turn that was sampled while the disk filled up is not sampled again when its client retries", async (t) => {
  if (!(await need(t, "mount"))) return;
  await using disk = await SmallDisk.mount();
  await using at = await proxyAt((request) => ({ text: long, before: request.probe ? undefined : Promise.resolve(disk.fill()) }), {
    store: new DiskStore(disk.path),
  });
  const client = await at.open({ purpose: "train" });
  const messages = [{ role: "user", content: "short" }];
  for (let tries = 0; tries < 3; tries++) assert.equal((await client.chat({ messages })).status, 503);
  disk.free();
  assert.equal((await client.say(messages)).content, long);
  assert.equal(at.engine.requests.length, 1);
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.outcome),
    ["delivered"],
  );
  assert.equal(fidelity.trainable_tokens, long.length + 1);
});

test("a run's records and trajectories on a full disk: what was acknowledged stays, what was not is said, and both go on", async (t) => {
  if (!(await need(t, "mount"))) return;
  await using disk = await SmallDisk.mount();
  const path = join(disk.path, "run");
  const record = (index: number): RolloutRecord =>
    RolloutRecord.parse({
      ...{ rollout_id: `r${index}`, attempt: 1, task_id: "t", task_hash: "h", group_id: "g", group_size: 1, sample_index: index },
      ...{ harness: "command", harness_version: null, state: "done", session_id: null, stop_reason: null, exit_code: null, verdict: null },
      ...{ error: null, sandbox: null, times: {}, output_tail: "x".repeat(500), summary: null },
    });
  let acknowledged = 0;
  {
    await using folder = await RunFolder.open(path);
    await folder.describe({ run_id: "r" });
    disk.fill();
    await assert.rejects(async () => {
      for (;;) await folder.record(record(acknowledged++));
    }, isFull);
    acknowledged--;
    await assert.rejects(folder.keep({ note: long } as unknown as Trajectory), isFull);
    assert.equal((await readRollouts(path)).length, acknowledged);
    disk.free();
    await folder.record(record(acknowledged++));
  }
  assert.deepEqual(
    (await readRollouts(path)).map((one) => one.rollout_id),
    Array.from({ length: acknowledged }, (_, index) => `r${index}`),
  );
  disk.fill();
  await assert.rejects(RunFolder.open(path), isFull);
  await assert.rejects(stat(join(path, "lock")), "no lock is left behind");
  disk.free();
  await using folder = await RunFolder.open(path);
  assert.equal(JSON.parse(await readFile(join(folder.path, "run.json"), "utf8")).run_id, "r");
});

for (const [retries, attempts, sampled] of [
  [0, 2, "again by the next attempt"],
  [1_000, 1, "once"],
] as const)
  test(`a run whose disk fills up waits and recovers; with a harness that ${retries ? "retries" : "gives up"} the turn is sampled ${sampled}`, {
    timeout: 300_000,
  }, async (t) => {
    if (!(await need(t, "mount"))) return;
    await using disk = await SmallDisk.mount(2_048);
    let isFirst = true;
    await using engine = await ScriptedEngine.start((request) => {
      const reply = solve(request);
      if (reply.tool_calls) return reply;
      if (isFirst) disk.fill();
      isFirst = false;
      return { text: long };
    });
    const folder = join(scratch, `${retries}`);
    await writeTask(folder, "small");
    const file = join(folder, "run.yaml");
    const text = runFile({ engine: engine.url, tasks: ["small"] });
    await writeFile(file, text.replace("harness: {", `harness: { env: { HARNESS_RETRIES: "${retries}" },`));
    await using running = startCli(["run", "-c", file, "-n", "1", "-o", join(disk.path, "runs")]);
    await running.until(() => (retries ? engine.requests.length === 2 : /no space left .*; trying again every 2 s/.test(running.stderr)));
    if (retries) await new Promise((resolve) => setTimeout(resolve, 1_500));
    disk.free();
    const { code, stderr } = await running.ended;
    assert.equal(code, 0, stderr);
    const path = join(disk.path, "runs", /runs\/(run\w+): /.exec(stderr)?.[1] ?? "");
    const records = (await readRollouts(path)).filter((one) => one.state === "done");
    assert.deepEqual(
      records.map((one) => [one.attempt, one.error?.code ?? null, one.verdict?.reward ?? null]),
      attempts === 2
        ? [
            [1, "store_full", null],
            [2, null, 1],
          ]
        : [[1, null, 1]],
    );
    const trajectories = await readTrajectories(path);
    assert.deepEqual(
      trajectories.map((one) => [one.attempt, one.in_loss, one.calls.length]),
      attempts === 2
        ? [
            [1, false, 2],
            [2, true, 2],
          ]
        : [[1, true, 2]],
    );
    // The turn that did not fit was kept in memory, and is in the log of the attempt that it was sampled for.
    assert.equal(trajectories[0]?.calls[1]?.sampled_length, long.length + 1);
    assert.equal(engine.requests.length, 2 * attempts);
  });

test("an export onto a full disk says so and leaves with an error", async (t) => {
  if (!(await need(t, "mount"))) return;
  await using disk = await SmallDisk.mount();
  await using engine = await ScriptedEngine.start((request) => ({ ...solve(request), ...(request.messages.length > 1 && { text: long }) }));
  const folder = join(scratch, "export");
  await writeTask(folder, "small");
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small"] }));
  const { run } = jsonOf<{ run: string }>(await cli(["run", "-c", file, "-n", "1", "-o", join(folder, "runs"), "--json"]));
  disk.fill();
  const exported = await cli(["export", "--run", run, "--out", join(disk.path, "rows.jsonl"), "--json"]);
  assert.equal(exported.code, 1);
  assert.equal(jsonOf<{ error: { code: string } }>(exported).error.code, "store_full");
});
