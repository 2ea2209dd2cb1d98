/** A replay sets the clock of budgets to where the record's stood, over deaths of processes and earlier replays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cutAfter, Replay, toRecording } from "../../proxy/index.ts";
import { cutAtDeath } from "../../proxy/replay/cut.ts";
import { LogBuilder, user } from "../fakes/records/log-builder.ts";

const hour = 3_600_000;
const begun = [user("Split it.")];

/** A call of a second, the death of its process, and an hour later another process with a replay that ends, or does not. */
function twoLives(): { log: LogBuilder; first: string; ended: () => void } {
  const log = new LogBuilder();
  const first = log.call({ messages: begun, begin: 1_000, finish: 2_000 });
  log.entries.push({ type: "resumed", time: hour, attempt: 2, calls: 1, sampled_tokens: 2 });
  const ended = () =>
    log.entries.push({
      type: "replay_ended",
      time: hour + 1_000,
      how: "arrived",
      turns: 1,
      difference: null,
      recorded_ms: 1_000,
      played_ms: 500,
    });
  return { log, first, ended };
}

const thirdLife = (log: LogBuilder): number | undefined => {
  log.entries.push({ type: "resumed", time: 5 * hour, attempt: 3, calls: 2, sampled_tokens: 4 });
  const recording = toRecording("sestest", log.entries);
  const replay = new Replay({ recording, cut: cutAtDeath(recording), after: "sample", words: "go_on", isOwn: true });
  return replay.end("arrived", null)?.recorded_ms;
};

test("a sub-agent's turn that was sampled while the main agent was still replayed does not add the time in which no process lived", () => {
  const { log } = twoLives();
  log.call({ messages: [user("Do the part.")], begin: hour + 1_000, finish: hour + 3_000 });
  assert.equal(thirdLife(log), 1_000);
});

test("the third life of a session begins where the clocks of both before it stood together", () => {
  const { log, first, ended } = twoLives();
  ended();
  log.call({ messages: [...begun, user("done")], parent: first, begin: hour + 2_000, finish: hour + 4_000 });
  assert.equal(thirdLife(log), 4_000);
});

test("a fork behind the death of the recorded process goes on at the record's clock, without the time in which no process lived", () => {
  const { log, first, ended } = twoLives();
  ended();
  log.call({ messages: [...begun, user("done")], parent: first, begin: hour + 2_000, finish: hour + 4_000 });
  const recording = toRecording("sestest", log.entries);
  const at = (turn: number) =>
    new Replay({ recording, cut: cutAfter(recording, turn), after: "sample", words: "go_on" }).end("arrived", null);
  assert.equal(at(1)?.recorded_ms, 2_000);
  assert.equal(at(2)?.recorded_ms, 4_000);
});
