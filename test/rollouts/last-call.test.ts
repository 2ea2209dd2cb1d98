/** What the end of a harness means where its last call failed: its exit code says how it took it, and not whose doing it was. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readTrajectories } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/index.ts";
import type { ScriptedReply, WireRequest } from "../fakes/scripted-engine.ts";
import { runner } from "../fakes/small-run.ts";
import { solve, writeTask } from "../fakes/small-task.ts";

type Env = Record<string, string>;

/** A run, with one retry, of a harness that always exits with 0: its records, and every attempt's stop and mask reasons. */
async function runOf(t: TestContext, reply: (request: WireRequest) => ScriptedReply, env: Env = {}) {
  const place = await mkdtemp(join(tmpdir(), "alidade-last-call-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  const path = join(place, "run");
  const run = await runner(t, place, { path, retries: 1, reply, env: { HARNESS_EXIT: "0", ...env } });
  const [record] = await run((await pickBackend("process", t.signal)).backend);
  const attempts = await readTrajectories(path);
  return { record, attempts: attempts.map(({ stop_reason, mask_reason, reward }) => [stop_reason, mask_reason, reward]) };
}

const isTitle = (request: WireRequest): boolean => JSON.stringify(request.messages).includes("title generator");
const isSecond = (request: WireRequest): boolean => !isTitle(request) && request.messages.some(({ role }) => role === "assistant");

/** The right play, with what the engine says instead to the first second turn, or to each. */
function failing(refuse: ScriptedReply["refuse"], how: "once" | "always" = "once"): (request: WireRequest) => ScriptedReply {
  let failed = 0;
  return (request: WireRequest): ScriptedReply => {
    if (isTitle(request)) return { text: "a title" };
    return isSecond(request) && (how === "always" || failed++ === 0) ? { refuse } : solve(request);
  };
}

const boom = { status: 500, message: "boom" };
const done = ["exited", null, 1];

test("a harness that exits with 0 after its last call failed at the engine has lost it, and is run again", {
  timeout: 60_000,
}, async (t) => {
  const { record, attempts } = await runOf(t, failing(boom));
  assert.deepEqual(attempts, [["engine_error", "engine_error", null], done]);
  assert.deepEqual([record?.attempt, record?.verdict?.reward], [2, 1]);
});

test("a title that was answered after the last call failed gives that call back to nobody", { timeout: 60_000 }, async (t) => {
  const { attempts } = await runOf(t, failing(boom), { HARNESS_TITLES: "1" });
  assert.deepEqual(attempts, [["engine_error", "engine_error", null], done]);
});

test("a failed call whose next try was answered is no loss", { timeout: 60_000 }, async (t) => {
  assert.deepEqual((await runOf(t, failing(boom), { HARNESS_RETRIES: "1" })).attempts, [done]);
});

test("a title that failed is no loss", { timeout: 60_000 }, async (t) => {
  const reply = (request: WireRequest): ScriptedReply => (isTitle(request) ? { refuse: boom } : solve(request));
  assert.deepEqual((await runOf(t, reply, { HARNESS_TITLES: "1" })).attempts, [done]);
});

test("a context that is full is the policy's own end, and no loss", { timeout: 60_000 }, async (t) => {
  const full = { status: 400, message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens." };
  assert.deepEqual((await runOf(t, failing(full, "always"))).attempts, [done]);
});
