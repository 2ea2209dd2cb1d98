/** What the end of a harness means where its last call failed: its exit code says how it took it, and not whose doing it was. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { failedTurn } from "../../rollouts/last-call.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { enginesAt } from "../fakes/proxies/engines-at.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { solve, writeTask } from "../fakes/rollouts/small-task.ts";

type Env = Record<string, string>;

/** A run, with one retry, of a harness that always exits with 0: its records, and every attempt's stop and mask reasons. */
async function runOf(t: TestContext, reply: (request: WireRequest) => ScriptedReply, env: Env = {}, onPause = () => {}) {
  const place = await mkdtemp(join(tmpdir(), "alidade-last-call-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  const path = join(place, "run");
  const run = await runner(t, place, { path, retries: 1, reply, onPause, env: { HARNESS_EXIT: "0", ...env } });
  const [record] = await run((await pickBackend("process", t.signal)).backend);
  const attempts = await readTrajectories(path);
  return { record, attempts: attempts.map(({ stop_reason, mask_reason, reward }) => [stop_reason, mask_reason, reward]) };
}

const isTitle = (request: WireRequest): boolean => JSON.stringify(request.messages).includes("title generator");
const isSecond = (request: WireRequest): boolean => !isTitle(request) && request.messages.some(({ role }) => role === "assistant");

/** The right play, with what the engine says instead to the first second turn, or to each. */
function failing(refuse: ScriptedReply["refuse"], how: "once" | "always" = "once", times = 1): (request: WireRequest) => ScriptedReply {
  let failed = 0;
  return (request: WireRequest): ScriptedReply => {
    if (isTitle(request)) return { text: "a title" };
    return isSecond(request) && (how === "always" || failed++ < times) ? { refuse } : solve(request);
  };
}

const boom = { status: 500, message: "boom" };
const done = ["exited", null, 1];
/** Graded for what is there: `done.txt`, which the first turn made. */
const lost = ["call_failed", null, 1];

/** An engine that stops sampling at the first second turn (`says`), until the run waits for the next attempt. */
function ill(says: ScriptedReply["refuse"], when: (request: WireRequest) => boolean = isSecond) {
  let isIll = false;
  let isOver = false;
  return {
    reply: (request: WireRequest): ScriptedReply => {
      isIll ||= !isOver && when(request);
      return isIll ? { refuse: says } : solve(request);
    },
    mend: () => {
      isOver = true;
      isIll = false;
    },
  };
}

test("a last call that the engine failed, and with it a question of ours, is the infrastructure's loss and run again", {
  timeout: 300_000,
}, async (t) => {
  for (const says of [boom, { status: 503, message: "loading" }, { status: 429, message: "no room" }]) {
    const engine = ill(says);
    const { record, attempts } = await runOf(t, engine.reply, {}, engine.mend);
    assert.deepEqual(attempts, [["engine_error", "engine_error", null], done], says.message);
    assert.deepEqual([record?.attempt, record?.verdict?.reward], [2, 1]);
  }
});

test("a title that was answered after the last call failed does not give that call back", { timeout: 300_000 }, async (t) => {
  const engine = ill(boom);
  const reply = (request: WireRequest): ScriptedReply => (isTitle(request) ? { text: "a title" } : engine.reply(request));
  const { attempts } = await runOf(t, reply, { HARNESS_TITLES: "1" }, engine.mend);
  assert.deepEqual(attempts, [["engine_error", "engine_error", null], done]);
});

for (const how of ["once", "always"] as const)
  test(`a last call that failed ${how} while the engine answers us is the call's own fault: what is there is graded, once`, {
    timeout: 300_000,
  }, async (t) => {
    for (const refuse of [boom, { status: 503, message: "cannot fetch the image" }]) {
      const { record, attempts } = await runOf(t, failing(refuse, how, refuse.status === 503 ? 3 : 1));
      assert.deepEqual(attempts, [lost]);
      assert.match(record?.error?.message ?? "", /engine_error: .*; the engine answered a short question of ours right after/);
    }
  });

test("what a script of the agent's comes to after the last answer is no end of the harness's work", { timeout: 300_000 }, async (t) => {
  const ofScript = (request: WireRequest): boolean => JSON.stringify(request.messages).includes("a script of mine");
  const { attempts } = await runOf(t, ill(boom, ofScript).reply, { HARNESS_LAST: "1" });
  assert.deepEqual(attempts, [done]);
});

test("what only a trainer or a full disk can bring about is the infrastructure's, what else is ours is not", async (t) => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  for (const code of Object.keys(errorCodes).filter((one) => errorCodes[one as ErrorCode] === "infrastructure") as ErrorCode[]) {
    const failure = { error: { code, message: "m", status: null }, served: null };
    const failed = await failedTurn(at.proxy.pool, failure, t.signal);
    const isOurs = /^(engine|store|policy_gone)/.test(code);
    assert.deepEqual([failed?.isInfrastructure, failed?.record.code], [isOurs, isOurs ? code : "call_failed"], code);
  }
  assert.equal(
    await failedTurn(at.proxy.pool, { error: { code: "request_invalid", message: "m", status: 400 }, served: null }, t.signal),
    null,
  );
});

test("a call that reached no engine is the infrastructure's, also where the engine was started again before it is asked", async (t) => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: {} });
  const served = { slot: at.proxy.pool.named("a"), model: "m" };
  const codeOf = async (code: ErrorCode, message: string) =>
    (await failedTurn(at.proxy.pool, { error: { code, message, status: 503 }, served }, t.signal))?.record.code;
  assert.equal(await codeOf("engine_unreachable", "cannot reach it: connect ECONNREFUSED 127.0.0.1:1"), "engine_unreachable");
  assert.equal(await codeOf("engine_unreachable", "cannot reach it: other side closed"), "call_failed", "a request may have it closed");
  assert.equal(await codeOf("engine_error", "m"), "call_failed");
});

test("a failed call whose next try was answered is no loss", { timeout: 300_000 }, async (t) => {
  assert.deepEqual((await runOf(t, failing(boom), { HARNESS_RETRIES: "1" })).attempts, [done]);
});

test("a title that failed is no loss", { timeout: 300_000 }, async (t) => {
  const reply = (request: WireRequest): ScriptedReply => (isTitle(request) ? { refuse: boom } : solve(request));
  assert.deepEqual((await runOf(t, reply, { HARNESS_TITLES: "1" })).attempts, [done]);
});

test("a context that is full is the policy's own end, and no loss", { timeout: 300_000 }, async (t) => {
  const full = { status: 400, message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens." };
  assert.deepEqual((await runOf(t, failing(full, "always"))).attempts, [done]);
});
