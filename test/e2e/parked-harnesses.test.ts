/**
 * A straggler of a real harness in Docker is parked, and one of the next group of its task goes on from it: the tools really run again,
 * no finished call is sampled again, and the work is graded as the play earns.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { loadPlays, playsFor } from "../../examples/demo/plays.ts";
import { startPracticeEngine } from "../../practice/start.ts";
import { ServiceClient } from "../../service/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { until } from "../fakes/machine/until.ts";
import { startCli } from "../fakes/processes/cli.ts";
import { startRecordingRelay } from "../fakes/proxies/recording-relay.ts";
import { need } from "../needs.ts";
import { examples } from "./play.ts";

const scratch = scratchFolder("parked-harnesses");
const task = join(examples, "demo/tasks/parse-duration");

for (const harness of ["pi", "codex", "claude-code"] as const)
  test(`${harness} in docker: a parked straggler goes on in the next group, graded, and none of its finished calls is sampled again`, {
    timeout: 600_000,
  }, async (t) => {
    if (!((await need(t, "docker")) && (await need(t, `harness:${harness}`)))) return;
    await using engine = await startPracticeEngine({ seed: 3, signal: t.signal });
    await using relay = await startRecordingRelay(engine.url);
    const plays = playsFor(harness, await loadPlays(join(task, "plays.json")), "right");
    await using gate = await holdFirst(relay.url, plays.length - 1);
    const place = join(scratch, harness);
    await mkdir(place);
    await writeFile(join(place, "run.yaml"), JSON.stringify({ engine: { url: gate.url }, harness, sandbox: "docker", tasks: [task] }));
    const service = startCli(["service", "-c", "run.yaml", "-p", "0", "--json", "--concurrency", "2"], { cwd: place });
    t.after(() => service[Symbol.asyncDispose]());
    await service.until(() => service.stdout.includes("\n"));
    await using client = ServiceClient.of(join(place, "runs", "service"));
    const straggler_cut = { share: 0.5, seconds: 1, rest: "park" } as const;
    const set = await client.set("s", { samples: 2, straggler_cut, sampling: plays });
    const said = async () => `${JSON.stringify(await set.state())} ${service.stderr}`;
    const sampled = () => relay.exchanges.length;

    await set.submit([{ group_key: "one", task: "parse-duration" }]);
    await until(async () => (await set.state()).parked?.waiting === 1, { ms: 300_000, said });
    const run = runOf(join(place, "runs", "service", "ledger.sqlite"));
    await until(async () => containersOf(run) === "", { said: async () => containersOf(run) });
    assert.equal(gate.held, 1);
    assert.equal(sampled(), 2 * plays.length - 1, "all calls but the one that was held");
    const { rollouts } = await set.state();
    assert.deepEqual([rollouts.running, rollouts.cancelled, rollouts.completed], [0, 1, 1]);

    // Alone: beside a quick one the clock would cut this group too.
    const asked = { group_key: "two", index: 0, task: "parse-duration" };
    const { result: taker, trajectories } = await set.rollout(asked, { payload: "trajectory" });
    assert.equal(sampled(), 2 * plays.length, "the call that was held is the only one that is sampled");
    assert.deepEqual([taker.state, taker.reward, taker.error], ["completed", 1, null]);
    const ended = [];
    for await (const { result } of set.results()) if (ended.push(result) === 3) break;
    const parked = ended.find(({ state }) => state === "cancelled") ?? assert.fail();
    assert.equal(parked.mask_reason, "parked");
    const { how, again_tokens, spared_tokens, why, parked_from } = taker.resume ?? assert.fail();
    assert.deepEqual([how, again_tokens, why, parked_from?.rollout_id], ["replay", 0, null, parked.rollout_id]);
    assert.ok(spared_tokens > 0);
    const went = trajectories?.[0] ?? assert.fail();
    const delivered = went.calls.filter(({ outcome }) => outcome === "delivered");
    assert.deepEqual([went.calls.length, delivered.length], [plays.length + 1, plays.length], "the one that was held is there as stopped");
    assert.deepEqual([went.replay?.how, went.replay?.turns], ["arrived", plays.length - 1]);
    assert.equal(went.replay?.classes.structure, undefined);
    assert.deepEqual((await set.state()).parked, { leaving: 0, waiting: 0, taken_up: 1, ended: {} });
    t.diagnostic(`${spared_tokens} tokens were not sampled again; ${JSON.stringify(went.replay)}`);

    await until(async () => containersOf(run) === "", { said: async () => containersOf(run) });
    assert.equal((await service.kill("SIGTERM")).code, 0, service.stderr);
  });

function runOf(ledger: string): string {
  using file = new DatabaseSync(ledger, { readOnly: true });
  return String(file.prepare("SELECT value FROM facts WHERE name = 'id'").get()?.value);
}

function containersOf(run: string): string {
  return execFileSync("docker", ["ps", "-aq", "--filter", `label=alidade.run=${run}`], { encoding: "utf8" });
}

/** Holds the first request behind so many turns until its client leaves, and passes on all others. */
async function holdFirst(target: string, turns: number): Promise<AsyncDisposable & { url: string; held: number }> {
  const gate = { url: "", held: 0 };
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await text(incoming);
    if (gate.held === 0 && turnsIn(body) === turns) {
      gate.held += 1;
      return;
    }
    const headers = { ...incoming.headers, host: new URL(target).host };
    const upstream = request(new URL(incoming.url ?? "/", target), { method: incoming.method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    upstream.on("error", () => outgoing.destroy());
    outgoing.on("close", () => upstream.destroy());
    upstream.end(body);
  };
  const server = createServer((incoming, outgoing) => void pass(incoming, outgoing).catch(() => outgoing.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  gate.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(gate, {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** Counts the turns in a request for a turn of a harness; null: it is another one. */
function turnsIn(body: string): number | null {
  if (!body.includes('"messages"') || !body.includes('"structured_outputs"')) return null;
  const { messages } = JSON.parse(body) as { messages: { role: string }[] };
  return messages.filter(({ role }) => role === "assistant").length;
}
