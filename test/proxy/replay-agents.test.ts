/** A harness that does not mark its sub-agents (Qwen Code): the record tells which turns are the main agent's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Tool } from "../../base/schema/message.ts";
import { cutAfter, type SessionRecording, toRecording, turnsOfMain, turnsToForkAt } from "../../proxy/index.ts";
import { assistant, LogBuilder, system, user } from "../fakes/records/log-builder.ts";

const named = (name: string): Tool => ({ name, description: "", parameters: {}, kind: "function" });
/** What stands at the beginning of a conversation, as Qwen Code sends it. */
const heads = {
  main: { first: system("You are a CLI agent."), tools: [named("edit"), named("agent")] },
  part: { first: system("You work for a parent agent."), tools: [named("edit"), named("shell"), named("report")] },
};

type Head = keyof typeof heads;

/** Writes a log of conversations, each of which says a word more with each turn. No request carries a mark of its agent. */
class Talks {
  readonly log = new LogBuilder();
  readonly #talks = new Map<string, { head: Head; chat: Message[]; parent: string | null }>();

  say(name: string, head: Head = "part"): this {
    const talk = this.#talks.get(name) ?? { head, chat: [heads[head].first, user(`Begin ${name}.`)], parent: null };
    const said = assistant(`${name} says ${talk.chat.length}`);
    const parent = this.log.call({ messages: talk.chat, tools: heads[talk.head].tools, says: said, parent: talk.parent });
    this.#talks.set(name, { ...talk, chat: [...talk.chat, said, user("result")], parent });
    return this;
  }

  get recording(): SessionRecording {
    return toRecording("sestest", this.log.entries);
  }
}

test("a conversation that begins while the main agent's goes on is a sub-agent's, and its turns are no places to fork at", () => {
  const { recording } = new Talks().say("main", "main").say("a").say("b").say("a").say("main").say("main");
  assert.deepEqual(turnsOfMain(recording), [1, 5, 6]);
  assert.deepEqual(turnsToForkAt(recording), [0, 1, 5]);
  assert.equal(cutAfter(recording, 1).next?.number, 5);
  assert.equal(cutAfter(recording, null).last?.number, 6);
  assert.throws(
    () => cutAfter(recording, 3),
    /turn 3 is of a conversation beside the main agent's, and no turn of the main agent: its turns are 1, 5, 6/,
  );
});

test("a sub-agent with the main agent's own system prompt and tools is told apart too", () => {
  const { recording } = new Talks().say("main", "main").say("a", "main").say("a").say("main");
  assert.deepEqual(turnsOfMain(recording), [1, 4]);
});

test("a history that is written anew stays the main agent's, though a sub-agent works meanwhile", () => {
  const compacted = new Talks().say("main", "main").say("a").say("main again", "main").say("a").say("main again");
  assert.deepEqual(turnsOfMain(compacted.recording), [1, 3, 5]);
});

test("conversations one after the other are the main agent's, whatever their heads are", () => {
  const { recording } = new Talks().say("plan", "main").say("plan").say("do").say("do").say("check", "main");
  // The last one has the head of the first one, so what came between them may be another agent's.
  assert.deepEqual(turnsOfMain(recording), [1, 2, 5]);
  assert.deepEqual(turnsOfMain(new Talks().say("plan", "main").say("plan").say("do").say("do").recording), [1, 2, 3, 4]);
});
