/** Sub-agents that run side by side: whatever their names and their order are now, each is given the answers of one recorded agent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Message, NeutralRequest } from "../../base/schema/message.ts";
import type { Restored } from "../../base/schema/session-log.ts";
import { cutAfter, Replay, type SessionRecording, toRecording } from "../../proxy/index.ts";
import type { RecordedCall } from "../../proxy/replay/recording.ts";
import { LogBuilder } from "../fakes/records/log-builder.ts";

/** How many turns each sub-agent took, and what it was told; several may be told the same. */
type Agents = { turns: number; prompt: string }[];

const says = (text: string): Message => ({ role: "assistant", parts: [{ type: "text", text }] });
const asks = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

function record(agents: Agents): SessionRecording {
  const log = new LogBuilder();
  const first = [asks("Split it.")];
  const root = log.call({ messages: first, says: says("I split it.") });
  for (const [index, { turns, prompt }] of agents.entries()) {
    const chat = [asks(prompt)];
    let parent: string | null = null;
    for (let turn = 0; turn < turns; turn++) {
      const said = says(`agent ${index} turn ${turn}`);
      parent = log.call({ agent: `old-${index}`, request_class: "sub_agent", messages: [...chat], says: said, parent });
      chat.push(said, asks(`result of turn ${turn}, took 12 ms`));
    }
  }
  log.call({ messages: [...first, says("I split it."), asks("all done in 5 s")], says: says("Done."), parent: root });
  return toRecording("sestest", log.entries);
}

const arbitraryAgents = fc.array(
  fc.record({ turns: fc.integer({ min: 1, max: 4 }), prompt: fc.constantFrom("Look.", "Write.", "Test.") }),
  {
    minLength: 1,
    maxLength: 5,
  },
);

/** A client that plays a conversation again: results have other durations, and it answers what it is given. */
class Player {
  readonly given: RecordedCall[] = [];
  readonly #replay: Replay;
  readonly #agent: string;
  readonly #chat: Message[];
  readonly #restored: Restored[] = [];

  constructor(replay: Replay, agent: string, prompt: string) {
    this.#replay = replay;
    this.#agent = agent;
    this.#chat = [asks(prompt)];
  }

  ask(result: string): void {
    const labels = { agent: this.#agent, request_class: this.#agent === "main" ? ("main" as const) : ("sub_agent" as const), labels: {} };
    const messages = [...this.#chat];
    const request = { messages, tools: [] } as unknown as NeutralRequest;
    const sent = { messages, restored: [...this.#restored], parent: this.given.at(-1)?.call ?? null };
    const asked = { dialect: "openai-chat", labels, request, sent };
    const found = this.#replay.place(asked);
    assert.equal(this.#replay.whyDiverged(found, asked), null);
    assert.ok(found.placed?.isAnswered);
    const { recorded } = found.placed;
    this.given.push(recorded);
    this.#restored.push({
      message_index: messages.length,
      from_call_id: recorded.call.id,
      evidence: "tool_call_id",
      status: "identical",
      differences: [],
    });
    this.#chat.push(recorded.call.turn?.message ?? assert.fail(), asks(result));
  }
}

test("each place is given once, an agent stays with one recorded agent, and all that were asked for come to their ends", () => {
  fc.assert(
    fc.property(arbitraryAgents, fc.infiniteStream(fc.nat()), (agents, order) => {
      const recording = record(agents);
      const replay = new Replay({ recording, cut: cutAfter(recording, null), after: "stop", words: "go_on" });
      const main = new Player(replay, "main", "Split it.");
      main.ask("all done in 77 s");
      const players = agents.map(({ prompt }, index) => new Player(replay, `new-${agents.length - index}`, prompt));
      // One that has more to say: by what it was given, for agents that were told the same may have changed places.
      const turnsOf = ({ given: [first] }: Player): number => agents[Number(first?.call.begun.agent.slice("old-".length))]?.turns ?? 1;
      for (let open = players; open.length > 0; open = open.filter((one) => one.given.length < turnsOf(one))) {
        const player = open[(order.next().value ?? 0) % open.length] as Player;
        player.ask(`result of turn ${player.given.length}, took 987 ms`);
      }
      main.ask("unused");
      const given = [main, ...players].flatMap((one) => one.given.map(({ call }) => call.id));
      assert.equal(new Set(given).size, recording.calls.length);
      for (const { given: own } of players) assert.equal(new Set(own.map(({ call }) => call.begun.agent)).size, 1);
      assert.ok(replay.hasGivenAll);
    }),
    { numRuns: 300 },
  );
});

test("one request more than the record has for an agent is no place of another agent", () => {
  const recording = record([
    { turns: 1, prompt: "Look." },
    { turns: 3, prompt: "Write." },
  ]);
  const replay = new Replay({ recording, cut: cutAfter(recording, null), after: "stop", words: "go_on" });
  const short = new Player(replay, "new-1", "Look.");
  short.ask("result of turn 0, took 1 ms");
  assert.throws(() => short.ask("more"), assert.AssertionError);
});

test("agents that are told the same but for a number find their own places, also when all that is said has other values now", () => {
  const told = (time: string, part: number): Message[] => [
    { role: "system", parts: [{ type: "text", text: `It is ${time}.` }] },
    asks(`Repair test ${part}.`),
  ];
  const log = new LogBuilder();
  for (const part of [1, 2]) log.call({ agent: `old-${part}`, request_class: "sub_agent", messages: told("10:00:01", part) });
  const recording = toRecording("sestest", log.entries);
  const replay = new Replay({ recording, cut: cutAfter(recording, null), after: "stop", words: "go_on" });
  const placeOf = (part: number) => {
    const messages = told("9:58:59", part);
    const request = { messages, tools: [] } as unknown as NeutralRequest;
    const labels = { agent: `new-${part}`, request_class: "sub_agent" as const, labels: {} };
    return replay.place({ dialect: "openai-chat", labels, request, sent: { messages, restored: [], parent: null } }).placed?.recorded
      .number;
  };
  assert.deepEqual([placeOf(2), placeOf(1)], [2, 1]);
});
