/** The short form of `bench/replay.ts`: one session of Pi, replayed to its end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hands } from "../../bench/replay/hands.ts";
import { countReplays, type HarnessReplays, isReached, measureReplays, type Replayed } from "../../bench/replay/measure-replays.ts";
import { drawSession } from "../../bench/replay/session-script.ts";
import { pi } from "../../harnesses/pi.ts";
import { startPracticeEngine } from "../../practice/start.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { installedPack } from "../harness/installed-pack.ts";

const scratch = scratchFolder("replays");

test("a scripted session is recorded, and its replay arrives with the same reward", { timeout: 300_000 }, async (t) => {
  if (!(await installedPack(t, pi))) return;
  await using engine = await startPracticeEngine({ seed: 1, signal: t.signal });
  const options = { harness: "pi", sessions: 1, seed: 1, turns: { least: 7, most: 7 }, every: 100 } as const;
  const measured = await measureReplays({ ...options, engineUrl: engine.url, place: scratch, signal: t.signal, say: () => undefined });
  assert.deepEqual(measured.not_recorded, []);
  const [session] = measured.sessions;
  assert.ok(session && session.turns >= 7 && (session.reward ?? 0) > 0, JSON.stringify(session));
  const { replays, arrived, same_reward, requests } = countReplays(measured);
  assert.deepEqual([replays, arrived, same_reward, requests.structure], [1, 1, 1, 0], JSON.stringify(measured.replays));
  assert.ok(requests.values > 0, "its process in the background has another number");
  assert.equal(isReached([measured]), true);
});

test("no two scripts are equal, and each has reads, edits, a background process and sub-agents", () => {
  const options = { turns: { least: 10, most: 20 }, agents: hands["qwen-code"].agents };
  const drawn = Array.from({ length: 60 }, (_, seed) => drawSession({ name: `qwen-code-${seed}`, seed, ...options }));
  assert.equal(new Set(drawn.map(({ turns }) => JSON.stringify(turns))).size, drawn.length);
  for (const { turns, agents } of drawn) {
    // The model's last words are one more turn.
    assert.ok(turns.length + 1 >= 10 && turns.length + 1 <= 20, `${turns.length}`);
    const done = turns.flat().map((step) => step.do);
    for (const wanted of ["read", "edit", "start", "look", "agent"] as const) assert.ok(done.includes(wanted), wanted);
    assert.equal(done.filter((step) => step === "agent").length, Object.keys(agents).length);
  }
  const { turns } = drawSession({ name: "pi-1", seed: 1, turns: { least: 10, most: 20 }, agents: hands.pi.agents });
  assert.ok(!turns.flat().some((step) => step.do === "agent"));
});

test("too few arrivals, too few equal rewards and an unrecorded session each fail the measure", () => {
  const sessions = Array.from({ length: 10 }, (_, at) => ({ session: `s${at}`, turns: 10, calls: 10, agents: 1, reward: 0.5 }));
  const end = { turn: null, has_arrived: true, classes: { equal: 1 }, difference: null, why_not: null, reward: 0.5 };
  const replays = sessions.map(({ session }): Replayed => ({ ...end, session }));
  const sound: HarnessReplays = { harness: "pi", sessions, not_recorded: [], replays, refused: [] };
  const changed = (at: number, one: Partial<Replayed>) => ({ ...sound, replays: replays.with(at, { ...replays[at]!, ...one }) });
  assert.equal(isReached([sound]), true);
  assert.equal(isReached([changed(0, { reward: 1 })]), false, "nine of ten rewards are equal");
  assert.equal(isReached([changed(0, { reward: null })]), false, "no reward is not the recorded one");
  assert.equal(isReached([changed(0, { turn: 3, has_arrived: false })]), true, "nine of ten arrived");
  const two = {
    ...sound,
    replays: [...replays, { ...replays[0]!, turn: 3, has_arrived: false }, { ...replays[1]!, turn: 6, has_arrived: false }],
  };
  assert.equal(isReached([two]), false, "ten of twelve arrived");
  const refused = ["s0", "s1"].map((session) => ({ session, turn: 3 }));
  assert.equal(isReached([{ ...sound, refused }]), false, "two of twelve wanted turns were refused");
  assert.equal(isReached([{ ...sound, not_recorded: [{ session: "s10", why: "it has no reward" }] }]), false);
  assert.equal(isReached([]), false);
});
