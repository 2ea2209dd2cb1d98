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

/** Replays a record of so many conversations of one turn, the last one first, and counts how often recorded messages are read. */
function readsOf(conversations: number, sentFor: (index: number) => string): number {
  const log = new LogBuilder();
  const asked = Array.from({ length: conversations }, (_, index) => [user(`Do the part named ${name(index)} of 7.`)]);
  for (const [index, messages] of asked.entries()) log.call({ messages, prompt: [index], says: assistant(`did ${index}`) });
  const recording = toRecording("sestest", log.entries);
  let reads = 0;
  for (const { call } of recording.calls) {
    const { messages } = call;
    const read = (): Message[] => {
      reads++;
      return messages;
    };
    Object.defineProperty(call, "messages", { get: read });
  }
  const replay = new Replay({ recording, cut: cutAfter(recording, null), after: "stop", words: "go_on" });
  for (let index = conversations - 1; index >= 0; index--) {
    const messages = [user(sentFor(index))];
    const request = { model: "m", messages, tools: [], tool_choice: null, sampling: {}, stream: false, native: {} };
    const labels = { agent: "main", request_class: "main" as const, labels: {} };
    const { dialect } = recording.calls[0]?.call.begun ?? assert.fail();
    const { placed } = replay.place({ dialect, labels, request, sent: { messages, restored: [], parent: null } });
    if (sentFor(index).includes(name(index))) assert.equal(placed?.recorded.number, index + 1, "the conversation's own place");
  }
  return reads;
}

/** A word without digits, for those are values. */
function name(index: number): string {
  return [...String(index)].map((digit) => "abcdefghij"[Number(digit)]).join("");
}

test("of a record with many conversations a request is compared with a bounded number, and finds its own by its words", () => {
  for (const [what, sent] of [
    ["the same", (index: number) => `Do the part named ${name(index)} of 7.`],
    ["other values", (index: number) => `Do the part named ${name(index)} of 9.`],
  ] as const) {
    const reads = readsOf(400, sent);
    assert.ok(reads <= 400 * 38, `${what}: ${reads} reads of the messages of 400 conversations`);
  }
  const growth = readsOf(800, () => "Run on.") / readsOf(400, () => "Run on.");
  assert.ok(growth < 2.2, `grew ${growth} times`);
});
