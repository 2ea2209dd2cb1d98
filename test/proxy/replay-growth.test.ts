/** What a replay and a choice of forks cost on a long session: questions about its calls are counted, not timed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../base/schema/message.ts";
import { cutAfter, Replay, type SessionRecording, toRecording, turnsToForkAt } from "../../proxy/index.ts";
import { forkPlaces } from "../../rollouts/branching/fork-places.ts";
import { assistant, LogBuilder, user } from "../fakes/records/log-builder.ts";

const turns = 300;

/** A set that counts how often it is asked. */
class Asked extends Set<string> {
  times = 0;

  override has(id: string): boolean {
    this.times++;
    return super.has(id);
  }
}

function longSession(turns: number): SessionRecording & { main: Asked } {
  const log = new LogBuilder();
  const messages: Message[] = [user("Begin.")];
  let parent: string | null = null;
  for (let turn = 0; turn < turns; turn++) {
    const says = assistant(`turn ${turn}`);
    parent = log.call({ messages: [...messages], prompt: [turn], says, parent });
    messages.push(says, user("go on"));
  }
  const recording = toRecording("sestest", log.entries);
  return { ...recording, main: new Asked(recording.main) };
}

test("the turns to fork at are found in time that grows with the session, not with its square", () => {
  const recording = longSession(turns);
  assert.equal(turnsToForkAt(recording).length, turns);
  forkPlaces({ rollout_id: "r", depth: 0, reward: 1 }, recording, [], () => 0);
  assert.ok(recording.main.times <= 4 * turns, `asked ${recording.main.times} times for ${turns} turns`);
});

test("whether a replay has given all of its answers is asked at each turn, and looks through no recording each time", () => {
  const recording = longSession(turns);
  const cut = cutAfter(recording, null);
  const answered = new Asked(cut.answered);
  const replay = new Replay({ recording, cut: { ...cut, answered }, after: "stop", words: "go_on" });
  for (let turn = 0; turn < turns; turn++) assert.equal(replay.hasGivenAll, false);
  assert.ok(answered.times <= 6 * turns, `asked ${answered.times} times in ${turns} turns`);
});
