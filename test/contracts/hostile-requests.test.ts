/**
 * Hostile clients of every dialect against the real proxy and store: whatever they send, every log reads back as it was
 * written, reconstructs and exports, nothing is an internal error, and a restarted proxy knows what the first one knew.
 *
 *     ALIDADE_TEST_FUZZ_SESSIONS=500 ALIDADE_TEST_FUZZ_SEED=2 npm test -- hostile-requests
 */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { canonicalJson } from "../../base/schema/ids.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { LogEntry } from "../../base/schema/session-log.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { exporters } from "../../exporters/registry.ts";
import { dialects } from "../../proxy/dialects/registry.ts";
import { rebuildSession } from "../../proxy/index.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { reconstruct, selectRows, verifyRows } from "../../reconstruct/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { until } from "../fakes/machine/until.ts";
import { Client, type ProxyAt, proxyAt } from "../fakes/proxies/proxy-at.ts";
import { exported } from "../fakes/records/exported.ts";
import { stateOf } from "../fakes/records/state-of.ts";
import { cases as engineCases, withEngine } from "./engine-cases.ts";
import { Draw } from "./hostile-requests/draw.ts";
import { playSession, reply, type Sent } from "./hostile-requests/play-session.ts";
import { type Speaker, speakers } from "./hostile-requests/speakers.ts";

const scratch = scratchFolder("hostile-requests");
/** For each dialect: 5 × 12 × 12 requests take ten seconds. `.ci/run` draws 20. */
const sessions = Number(process.env.ALIDADE_TEST_FUZZ_SESSIONS ?? 12);
const seed = Number(process.env.ALIDADE_TEST_FUZZ_SEED ?? 1);
const requestsEach = 12;
/** Below this share of accepted requests the fuzzer would only knock at the door. */
const leastAccepted = 0.4;

for (const [index, dialect] of dialects.entries())
  test(`${dialect.name}: whatever a client sends, the log reads back, reconstructs, exports, and survives a restart`, async (t) => {
    const speaker = speakers.get(dialect.name) as Speaker;
    assert.ok(speaker, `${dialect.name} has no speaker here: add one`);
    const folder = join(scratch, dialect.name);
    const replies = new Draw(seed, index);
    const options = { store: new DiskStore(folder), keepAliveMs: 5 };
    const played: Played[] = [];
    const before = new Map<string, string>();
    {
      await using at = await proxyAt((request) => (request.probe ? { text: "x" } : reply(replies)), options);
      for (let number = 0; number < sessions; number++) played.push(await play(at, speaker, [seed, index, number]));
      for (const { client } of played) await settled(at, client);
      for (const { client } of played) before.set(client.sessionId, JSON.stringify(stateOf(at.proxy.session(client.sessionId))));
      assert.deepEqual(at.unseen, [], "what the proxy could not tell over HTTP");
    }
    const all = played.flatMap(({ sent }) => sent);
    // The engine's own faults are told as such; all else is the client's.
    for (const one of all) assert.ok(one.status < 500 || engineFaults.test(one.answer), `${one.path}\n${one.text}\n${one.answer}`);
    const trajectories = await Promise.all(played.map(({ client, seeds }) => readBack(folder, client.sessionId, seeds.join())));
    await exportAll(trajectories, options.store);
    for (const { client, seeds } of played) await damage(folder, client.sessionId, new Draw(...seeds, 1));
    await restart(options, played, before);
    const accepted = all.filter(({ status }) => status === 200).length;
    t.diagnostic(
      `${dialect.name}: ${all.length} requests, ${accepted} accepted; ${statuses(all)}; ${trajectories.flatMap((one) => one.calls).length} calls`,
    );
    assert.ok(accepted / all.length >= leastAccepted, `${accepted} of ${all.length} requests were accepted`);
  });

for (const [index, kind] of Object.keys(engineCases).entries())
  test(`${kind}: whatever clients of all dialects have it asked, the log reads back and reconstructs`, async (t) => {
    const folder = join(scratch, `engine-${kind}`);
    const draw = new Draw(seed, 100 + index);
    const played: Played[] = [];
    await withEngine(
      kind,
      (request) => (request.probe ? { text: "x" } : reply(draw)),
      async (engine) => {
        await using at = await proxyAt(() => ({}), { engine, store: new DiskStore(folder), keepAliveMs: 5 });
        for (const [name, speaker] of speakers)
          for (let number = 0; number < sessions / 20; number++)
            played.push(await play(at, speaker, [seed, index, name.length, number], { purpose: "live" }));
        for (const { client } of played) await settled(at, client);
        assert.deepEqual(at.unseen, []);
      },
    );
    const all = played.flatMap(({ sent }) => sent);
    for (const one of all) assert.notEqual(one.status, 500, `${one.path}\n${one.text}\n${one.answer}`);
    for (const { client, seeds } of played) await readBack(folder, client.sessionId, seeds.join());
    t.diagnostic(`${kind}: ${all.length} requests; ${statuses(all)}`);
  });

/** Those that `reply` makes: an aborted generation, a finish reason of no API, and a connection that breaks. */
const engineFaults = /aborted the generation|finish reason of error|broke off/;

type Played = { client: Client; sent: Sent[]; seeds: number[] };

async function settled(at: ProxyAt, client: Client): Promise<void> {
  await until(() => at.proxy.session(client.sessionId).running.inFlight().length === 0);
  await client.settled();
}

async function play(at: ProxyAt, speaker: Speaker, seeds: number[], spec: Partial<SessionSpec> = {}): Promise<Played> {
  const draw = new Draw(...seeds);
  const relay = draw.of(["buffered", "live"] as const);
  const sandboxed = draw.chance(0.5);
  const client = await at.open({
    purpose: "train",
    // A sandbox gets whole answers only.
    relay: sandboxed ? "buffered" : relay,
    sandboxed,
    rollout_id: seeds.join("-"),
    ...spec,
  });
  return { client, sent: await playSession(client, speaker, draw, requestsEach), seeds };
}

/** Each line is what its schema reads of it, and the trajectory is one that can be read back as well. */
async function readBack(folder: string, sessionId: string, what: string): Promise<Trajectory> {
  const lines = (await readFile(join(folder, `${sessionId}.jsonl`), "utf8")).trimEnd().split("\n");
  for (const line of lines) {
    const written = readJson(line) as unknown;
    assert.equal(canonicalJson(LogEntry.parse(written)), canonicalJson(written), `session ${what}: ${line.slice(0, 300)}`);
  }
  const trajectory = reconstruct(await new DiskStore(folder).read(sessionId), { status: "graded", reward: 1, group: { id: "g", size: 1 } });
  const text = JSON.stringify(trajectory);
  assert.equal(canonicalJson(Trajectory.parse(readJson(text))), canonicalJson(readJson(text)), `the trajectory of session ${what}`);
  assert.deepEqual(trajectory.fidelity.damaged, []);
  assert.equal(trajectory.calls.length, lines.filter((line) => line.startsWith('{"type":"call_begun"')).length);
  assert.deepEqual(verifyRows(trajectory, selectRows(trajectory).rows), []);
  return trajectory;
}

/** A line of its log is damaged: what is left is the same to who reads it and to a proxy that goes on with it. */
async function damage(folder: string, sessionId: string, draw: Draw): Promise<void> {
  const store = new DiskStore(join(folder, "damaged"));
  const lines = (await readFile(join(folder, `${sessionId}.jsonl`), "utf8")).trimEnd().split("\n");
  const at = 1 + draw.below(Math.max(1, lines.length - 1));
  lines[at] = draw.of(["", "{}", "\u0000", lines[at]?.slice(0, -1) ?? "", lines[at]?.replace('"time":', '"when":') ?? ""]) || "x";
  await mkdir(store.folder, { recursive: true });
  await writeFile(join(store.folder, `${sessionId}.jsonl`), `${lines.join("\n")}\n`);
  const trajectory = reconstruct(await store.read(sessionId));
  assert.ok(trajectory.fidelity.damaged.some(({ reason }) => reason.includes(`line ${at + 1} `)));
  assert.deepEqual(verifyRows(trajectory, selectRows(trajectory).rows), []);
  const session = await rebuildSession(store, sessionId);
  assert.deepEqual(
    session?.calls().map((call) => [call.id, call.messages.length, call.idText?.length ?? null]),
    trajectory.calls.map((call) => [
      call.call_id,
      call.input.length,
      call.prompt_length === null ? null : call.prompt_length + (call.sampled_length ?? 0),
    ]),
    `session ${sessionId}, line ${at + 1}`,
  );
}

async function exportAll(trajectories: Trajectory[], { media }: DiskStore): Promise<void> {
  for (const exporter of exporters) {
    try {
      await exported(exporter, trajectories, { media });
    } catch (error) {
      for (const one of trajectories)
        await exported(exporter, [one], { media }).catch((cause) => assert.fail(`${exporter.name} of ${one.rollout_id}: ${cause.stack}`));
      throw error;
    }
  }
}

async function restart(options: Parameters<typeof proxyAt>[1], played: Played[], before: Map<string, string>): Promise<void> {
  await using at = await proxyAt(() => ({ text: "after" }), { ...options, rebuild: true });
  for (const { client, seeds } of played) {
    const after = readJson(JSON.stringify(stateOf(at.proxy.session(client.sessionId)))) as unknown;
    assert.deepEqual(after, readJson(before.get(client.sessionId) as string), `session ${seeds} after a restart`);
    const again = new Client(at.proxy, client.sessionId, client.key);
    assert.equal((await again.chat({ messages: [{ role: "user", content: "still there?" }] })).status, 200, `session ${seeds} goes on`);
  }
  assert.deepEqual(at.unseen, []);
}

function statuses(sent: Sent[]): string {
  const counts = new Map<number, number>();
  for (const { status } of sent) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} × ${status}`).join(", ");
}
