import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../../base/schema/message.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { compareSessions, type SessionDiff } from "../../../view/diff/compare-sessions.ts";
import { renderDiff } from "../../../view/diff/render.ts";
import { assistant, LogBuilder, system, toolCall, toolResult, user } from "../../fakes/records/log-builder.ts";

type Over = {
  system?: string;
  second?: string;
  result?: string;
  sampled?: number;
  helper?: string;
  extra?: boolean;
  id?: string;
  ids?: boolean;
};

/** Two turns with a tool, and a helper beside them. */
function session(over: Over = {}): Trajectory {
  const log = new LogBuilder();
  // Words become tokens as they are met: all of them first, so that both sessions have one vocabulary.
  log.tokens(
    "<system> <user> <tool> <assistant> be good bad fix it let me look <call> bash {} a.txt b.txt c.txt help ok done not no more ",
  );
  const start: Message[] = [system(over.system ?? "be good"), user("fix it")];
  const id = over.id ?? "1";
  const says = assistant("let me look", toolCall(id, "{}"));
  const prompt = over.ids === false ? { prompt: null } : {};
  const sampled = over.sampled === undefined ? {} : { sampled: log.said(says).with(over.sampled, 999) };
  log.call({ messages: start, says, ...prompt, ...sampled });
  log.call({ messages: [user("help")], agent: over.helper ?? "a1b2", request_class: "sub_agent", ...prompt });
  const next = [...start, says, toolResult(id, over.result ?? "a.txt b.txt")];
  const answer = assistant(over.second ?? "done");
  log.call({ messages: next, says: answer, ...prompt });
  if (over.extra) log.call({ messages: [...next, answer, user("more")], ...prompt });
  return reconstruct(log.entries);
}

function parting(a: Trajectory, b: Trajectory): [number | null | undefined, string | undefined, string | undefined] {
  const found = compareSessions(a, b).parting;
  return [found?.pair.turn_a, found?.where, found?.why];
}

test("sessions that differ in ids and names only are the same", () => {
  const found = compareSessions(session(), session({ helper: "f9e8", id: "2" }));
  assert.deepEqual([found.same, found.parting], [true, null]);
  assert.match(renderDiff(found), /the same, token by token: 3 calls/);
});

test("they part in the prompt, in the sample or by a missing call, and the message says both sides", () => {
  assert.deepEqual(parting(session(), session({ system: "be bad" })), [1, "prompt", "message 1 differs (system)"]);
  assert.deepEqual(parting(session(), session({ second: "not done" })), [3, "sample", "they say different things"]);
  assert.deepEqual(parting(session(), session({ result: "c.txt" })), [3, "prompt", "message 4 differs (tool)"]);
  assert.deepEqual(parting(session(), session({ extra: true })), [null, "missing", "only B has this call"]);
  const found = compareSessions(session(), session({ result: "a.txt c.txt" }));
  assert.deepEqual([found.parting?.a, found.parting?.b], ["a.txt b.txt", "a.txt c.txt"]);
});

test("tool calls that differ are told from words that differ, and quotes begin at a word", () => {
  const asking = (name: string, args: string, words = "let me look") => {
    const log = new LogBuilder();
    log.call({ messages: [user("fix it")], says: assistant(words, toolCall("1", args, name)), prompt: null });
    return reconstruct(log.entries);
  };
  const why = (a: Trajectory, b: Trajectory) => compareSessions(a, b).parting?.why;
  const one = asking("bash", '{"command":"ls"}');
  assert.equal(why(one, asking("bash", '{"command":"cat"}')), "they call the same tool with other arguments");
  assert.equal(why(one, asking("edit", '{"command":"ls"}')), "they call different tools");
  assert.equal(
    why(one, asking("bash", '{"command":"ls"}', "look")),
    "they say different things, and call the same tool with the same arguments",
  );
  assert.equal(why(one, asking("bash", "{}", "look")), "they say different things, and call the same tool with other arguments");
  const long = "one two three four five six seven eight nine";
  const found = compareSessions(session({ second: `${long} done` }), session({ second: `${long} no` })).parting;
  assert.deepEqual([found?.a, found?.b], ["…five six seven eight nine done", "…five six seven eight nine no"]);
  const more = compareSessions(session(), session({ extra: true, second: "done" })).parting;
  assert.equal(more?.a, null);
  assert.equal(typeof more?.b, "string");
});

test("the same words in other tokens are told from other words", () => {
  assert.deepEqual(parting(session(), session({ sampled: 1 })), [1, "sample", "the same words in other tokens"]);
});

test("the alignment finds the tokens again behind a difference, and says where each stretch stands", () => {
  const { alignment } = compareSessions(session(), session({ result: "c.txt" })) as SessionDiff & {
    alignment: NonNullable<SessionDiff["alignment"]>;
  };
  assert.deepEqual(
    alignment.stretches.map(({ same, a, b }) => [same, a, b]),
    [
      [true, [0, 17], [0, 17]],
      [false, [17, 19], [17, 18]],
      [true, [19, 23], [18, 22]],
    ],
  );
  assert.equal(alignment.stretches[1]?.in_a, "observation of turn 3");
  assert.match(renderDiff(compareSessions(session(), session({ result: "c.txt" }))), /share 21 of 23 and 22 tokens/);
});

test("sessions without token ids are compared by their messages", () => {
  assert.equal(compareSessions(session({ ids: false }), session({ ids: false })).same, true);
  assert.deepEqual(parting(session({ ids: false }), session({ ids: false, second: "no" })), [3, "sample", "they say different things"]);
});

test("tool calls of sessions without token ids are the same under other ids, and tokens are not said to be compared", () => {
  const found = compareSessions(session({ ids: false }), session({ ids: false, id: "2" }));
  assert.deepEqual([found.same, found.parting], [true, null]);
  assert.match(renderDiff(found), /the same, by their messages \(no token ids\): 3 calls/);
  const mixed = compareSessions(session(), session({ ids: false }));
  assert.match(renderDiff(mixed), /the same, by their messages/);
});

test("what is printed cannot act on the terminal", () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the point
  assert.doesNotMatch(renderDiff(compareSessions(session(), session({ second: "\u001b[2J" }))), /\u001b/);
});
