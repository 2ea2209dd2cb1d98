/** Fences and names of weights over two nodes: one ledger, a real proxy each; the test itself is the trainer. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ServiceControl } from "../../../service/fences/service-control.ts";
import { type Lease, leaseSeconds, SqliteLedger } from "../../../service/ledger/index.ts";
import { ControlFollower } from "../../../service/nodes/control-follower.ts";
import { LeaseGuard } from "../../../service/nodes/lease-guard.ts";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const scratch = scratchFolder("control-follower");
let places = 0;
const hello = [{ role: "user", content: "hi" }];
const never = new Promise<never>(() => undefined);

/** A ledger, and a trainer's word over it; `node` joins with an engine that says `word` of its weights. */
function ledgerAt(t: TestContext) {
  const scope = new AsyncDisposableStack();
  t.after(() => scope.disposeAsync());
  let time = 1_000_000;
  const ledger = scope.use(SqliteLedger.open(join(scratch, `${places++}.sqlite`), { now: () => time }));
  const pass = (seconds: number): void => {
    time += seconds * 1000;
  };
  const node = async (name: string, { reply = { text: "hi" } as ScriptedReply, word = null as string | null } = {}) => {
    const at = scope.use(await proxyAt(() => reply, { pauseWaitSeconds: 600 }));
    const slot = at.proxy.pool.first;
    let says = word;
    slot.engine.weightVersion = async () => says;
    const over = new AbortController();
    const notes: string[] = [];
    const follower = new ControlFollower(at.proxy, ledger, (text) => notes.push(text), over.signal);
    const lease = await ledger.join({ name, slots: 1 });
    await follower.joined(lease);
    const following = follower.follow();
    scope.defer(async () => {
      over.abort();
      await following;
    });
    const serves = (weights: string): void => {
      says = weights;
    };
    return { ...at, slot, lease, notes, serves };
  };
  const control = new ServiceControl(ledger);
  const pause = (more: object = {}) => control.pause({ fence: "trainer", mode: "drain", timeout_seconds: 60, ...more }, t.signal);
  return { ledger, node, control, pause, pass };
}

test("a pause is answered when each node has drained, and a node that joins begins behind its gate", async (t) => {
  const { node, control, pause } = ledgerAt(t);
  const release = Promise.withResolvers<void>();
  const [busy, idle] = [await node("busy", { reply: { text: "hi", before: release.promise } }), await node("idle")];
  const client = await busy.open();
  const said = client.say(hello);
  await until(() => busy.slot.inFlight.size === 1);
  let isAnswered = false;
  const paused = pause().finally(() => {
    isAnswered = true;
  });
  await until(() => idle.slot.gate !== null && busy.slot.gate !== null);
  assert.equal(isAnswered, false, "a call still runs");
  release.resolve();
  await said;
  assert.deepEqual(await paused, {
    fence: "trainer",
    engines: [busy.slot.name],
    mode: "drain",
    drained: true,
    running: 1,
    held: 0,
    nodes: ["busy", "idle"],
  });
  const late = await node("late");
  assert.equal(late.slot.gate?.fence, "trainer");
  assert.deepEqual((await pause()).nodes, ["busy", "idle", "late"], "a restarted trainer asks for the same fence");
  await assert.rejects(pause({ engines: ["other"] }), { status: 409, param: "fence" });
  const waiting = client.say(hello);
  await until(() => busy.proxy.pool.waiting === 1);
  const policy = { version: "two", step: 2 };
  await control.setPolicy({ policy, fence: "trainer" }, t.signal);
  const { prefix_cache } = await control.resume("trainer", t.signal);
  assert.deepEqual(Object.keys(prefix_cache), ["busy", "idle", "late"]);
  for (const { slot } of [busy, idle, late]) assert.deepEqual([slot.gate, slot.policy], [null, policy]);
  await waiting;
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ policy }) => policy.end),
    [null, policy],
  );
});

test("a pause waits for a node that says nothing until its lease is over", async (t) => {
  const { ledger, node, pause, pass } = ledgerAt(t);
  const living = await node("living");
  await ledger.join({ name: "silent", slots: 1 });
  const paused = pause();
  await until(async () => Object.keys((await ledger.reports())[0]?.report?.answers ?? {}).length === 1);
  pass(leaseSeconds - 1);
  await ledger.beat(living.lease, []);
  pass(2);
  assert.deepEqual(await ledger.expire(), ["silent"]);
  assert.deepEqual((await paused).nodes, ["living"]);
});

test("weights are named at all nodes or at none, and opened at all or at none", async (t) => {
  const { node, control, pause } = ledgerAt(t);
  const [one, two] = [await node("one", { word: "first" }), await node("two", { word: "first" })];
  await control.setPolicy({ policy: { version: "first", step: 1 } }, t.signal);
  await pause();
  one.serves("second");
  const second = { policy: { version: "second", step: 2 }, fence: "trainer" };
  const refusal = { status: 409, message: new RegExp(`node two: .*engine "${two.slot.name}" says that it serves "first"`) };
  await assert.rejects(control.setPolicy(second, t.signal), refusal);
  assert.deepEqual(one.slot.policy, { version: "first", step: 1 }, "not even where the engine agrees");
  await assert.rejects(control.resume("trainer", t.signal), { status: 409, message: /node one: .*PUT \/policy/ });
  assert.ok(one.slot.gate && two.slot.gate);
  two.serves("second");
  const { checked } = await control.setPolicy(second, t.signal);
  assert.deepEqual(checked, { one: [one.slot.name], two: [two.slot.name] });
  const late = await node("late", { word: "first" });
  await assert.rejects(control.resume("trainer", t.signal), { status: 409, message: /node late/ });
  late.serves("second");
  await control.resume("trainer", t.signal);
  assert.deepEqual([one.slot.gate, two.slot.gate, late.slot.gate], [null, null, null]);
});

test("a pause that a node cannot carry out opens all gates, and one that was acknowledged stays shut", async (t) => {
  const { ledger, node, control, pause } = ledgerAt(t);
  const [stuck, idle] = [await node("stuck", { reply: { text: "hi", before: never } }), await node("idle")];
  const left = new AbortController();
  void (await stuck.open()).chat({ messages: hello }, left.signal).catch(() => undefined);
  await until(() => stuck.slot.inFlight.size === 1);
  const gone = new AbortController();
  const paused = control.pause({ fence: "f", mode: "drain", timeout_seconds: 60 }, gone.signal);
  await until(() => idle.slot.gate !== null);
  gone.abort();
  await assert.rejects(paused, { code: "drain_timeout", message: /stuck did not answer in time: .*calls are flowing again/ });
  await until(() => idle.slot.gate === null && stuck.slot.gate === null);
  await assert.rejects(pause({ engines: ["none"] }), { code: "not_found", param: "engines" });
  assert.deepEqual((await ledger.control()).fences, []);
  assert.equal((await pause({ mode: "abort" })).drained, true);
  await assert.rejects(pause({ fence: "other" }), { status: 409, message: /paused already, by fence trainer/ });
  const late = ledger.join({ name: "silent", slots: 1 });
  const again = new AbortController();
  const asked = control.pause({ fence: "trainer", mode: "abort", timeout_seconds: 60 }, again.signal);
  await late;
  again.abort();
  await assert.rejects(asked, { message: /silent.* did not answer in time: fence trainer stays shut/ });
  assert.ok(stuck.slot.gate && idle.slot.gate);
  left.abort();
});

test("a node that does not renew its lease shuts its gate and cancels what runs, and opens it with the next renewal", async () => {
  const notes: string[] = [];
  await using at = await proxyAt((_, index) => ({ text: "hi", ...(index === 0 && { before: never }) }), { pauseWaitSeconds: 600 });
  using guard = new LeaseGuard(at.proxy.pool, (text) => notes.push(text));
  const slot = at.proxy.pool.first;
  const heldBy = (): string | null => slot.gate?.fence ?? null;
  const lease: Lease = { node: "n", epoch: 1, seconds: 0.2 };
  const client = await at.open();
  const cut = client.chat({ messages: hello });
  await until(() => slot.inFlight.size === 1);
  guard.renewed(lease, performance.now());
  assert.equal(heldBy(), null);
  await until(() => slot.inFlight.size === 0);
  assert.equal((await cut).status, 503);
  assert.equal(heldBy(), "lease");
  const waiting = client.say([{ role: "user", content: "again" }]);
  await until(() => at.proxy.pool.waiting === 1);
  guard.renewed(lease, performance.now() - 1_000);
  assert.equal(heldBy(), "lease", "an answer that came too late opens nothing");
  guard.renewed({ ...lease, seconds: 3_600 }, performance.now());
  await waiting;
  guard.lost();
  assert.equal(heldBy(), "lease");
  assert.equal(notes.length, 3);
});
