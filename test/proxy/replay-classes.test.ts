/** What of a replayed request is a value, what are other words, and what is another structure. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../base/schema/message.ts";
import { compareRequests, withoutValues, withSettings } from "../../proxy/replay/compare-requests.ts";

const says = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });
const classOf = (recorded: string, now: string): string =>
  compareRequests({ messages: [says(recorded)], tools: [] }, { messages: [says(now)], tools: [] }).class;

test("durations, digits, ids, dates and temporary paths are values", () => {
  const pairs = [
    ["✔ one unit (0.868047ms)", "✔ one unit (10.43572ms)"],
    ["done in 999ms", "done in 1.02s"],
    ["done in 12345678ms", "done in 9ms"],
    ["Chunk ID: a1b2c3\nWall time: 0.0512 seconds", "Chunk ID: facade\nWall time: 1.2 seconds"],
    ["Chunk ID: 123456", "Chunk ID: 12ab56"],
    ["id 550e8400-e29b-41d4-a716-446655440000", "id 6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
    ["Mon Nov 23 10:00:01 UTC 2026", "Tue Dec 1 09:59:59 UTC 2026"],
    ["wrote /tmp/out-x9/log.txt", "wrote /tmp/other/log.txt"],
    ["pid   812", "pid 90211"],
    ["task ses_ddbee3499ffepwVt", "task ses_ddbeaea14ffennJd"],
    ["id: bg_4e0b9b8f", "id: bg_77278493"],
  ] as const;
  for (const [recorded, now] of pairs) assert.equal(classOf(recorded, now), "values", `${recorded} | ${now}`);
});

test("another word, and a verdict, is no value", () => {
  assert.equal(classOf("pass 1, fail 0", "fail 1, pass 0"), "words");
  assert.equal(classOf("ok 12", "not ok 12"), "words");
  assert.equal(classOf("FAILED test_addition1", "FAILED test_division2"), "words");
  assert.equal(classOf("same", "same"), "equal");
});

test("results of calls that ran side by side may come in another order", () => {
  const result = (call_id: string, text: string): Message => ({
    role: "tool",
    parts: [{ type: "tool_result", call_id, content: [{ type: "text", text }], is_error: false }],
  });
  const [a, b, c] = [result("a", "one"), result("b", "two"), result("c", "three")] as const;
  const compared = (now: Message[]) =>
    compareRequests({ messages: [says("go"), a, b, says("on"), c], tools: [] }, { messages: [says("go"), ...now], tools: [] });
  assert.equal(compared([a, b, says("on"), c]).class, "equal");
  const swapped = compared([b, a, says("on"), c]);
  assert.deepEqual([swapped.class, swapped.difference], ["values", "results of one turn came in another order"]);
  assert.equal(compared([result("b", "other"), a, says("on"), c]).class, "words", "each is held against its own call's result");
  assert.equal(compared([a, c, says("on"), b]).class, "structure", "a result of another turn");
  assert.equal(compared([a, a, says("on"), c]).class, "structure", "a result twice");
});

test("another role, call, number of results or list of tools is another structure", () => {
  const messages: Message[] = [says("a")];
  const tool = { name: "bash", parameters: null, kind: "function" as const };
  const differ = (now: { messages?: Message[]; tools?: (typeof tool)[] }) =>
    compareRequests({ messages, tools: [tool] }, { messages, tools: [tool], ...now });
  assert.equal(differ({ messages: [...messages, says("b")] }).class, "structure");
  assert.equal(differ({ messages: [{ ...says("a"), role: "system" }] }).class, "structure");
  assert.equal(differ({ tools: [] }).difference, "the tools were bash and are none");
});

test("another speaker is other words", () => {
  const by = (name: string) => ({ messages: [{ ...says("a"), name }], tools: [] });
  assert.deepEqual([compareRequests(by("ann"), by("ann")).class, compareRequests(by("ann"), by("bob")).class], ["equal", "words"]);
});

test("names and ids that a harness made as long as it likes are cut in what is told of them", () => {
  const long = "x".repeat(1_000_000);
  const answer = (call_id: string): Message => ({ role: "tool", parts: [{ type: "tool_result", call_id, content: [], is_error: false }] });
  const tool = (name: string) => ({ name, parameters: null, kind: "function" as const });
  for (const [recorded, now] of [
    [
      { messages: [answer("a")], tools: [] },
      { messages: [answer(long)], tools: [] },
    ],
    [
      { messages: [], tools: [tool("a")] },
      { messages: [], tools: [tool(long)] },
    ],
  ] as const) {
    const { class: name, difference } = compareRequests(recorded, now);
    assert.equal(name, "structure");
    assert.ok((difference?.length ?? 0) < 1_000, `${difference?.length} characters`);
  }
});

test("a difference far behind in a long line is shown where it is", () => {
  const line = "x".repeat(5_000);
  const { difference } = compareRequests({ messages: [says(`${line} left`)], tools: [] }, { messages: [says(`${line} right`)], tools: [] });
  assert.match(difference ?? "", /had "…x+ left" and has "…x+ right"/);
});

test("what a command prints costs time in proportion to its length, however it is made", () => {
  for (const piece of ["1", "a", "1.", "a1", "/tmp/", "-", " ", "f", "1 "]) {
    const text = piece.repeat(1_000_000 / piece.length);
    assert.ok(withoutValues(text).length <= text.length + 20, piece);
  }
});

test("other settings are values or words, named in the difference, and never another structure", () => {
  const recorded = { tool_choice: null, sampling: { temperature: 1, max_tokens: 4096, response_format: { type: "text" } } };
  const { sampling } = recorded;
  const same = compareRequests({ messages: [], tools: [] }, { messages: [], tools: [] });
  for (const [now, name, told] of [
    [{ ...recorded, sampling: { ...sampling } }, "equal", null],
    [{ ...recorded, sampling: { ...sampling, max_tokens: 8000 } }, "values", 'the setting max_tokens had "4096" and has "8000"'],
    [{ ...recorded, tool_choice: "required" as const }, "words", 'the setting tool_choice had "nothing" and has "\\"required\\""'],
    [{ ...recorded, sampling: { temperature: 1, max_tokens: 4096 } }, "words", "the setting response_format"],
    [{ ...recorded, sampling: { ...sampling, stop: Array.of("x") } }, "words", "the setting stop"],
  ] as const) {
    const { class: found, difference } = withSettings(same, recorded, now);
    assert.equal(found, name);
    assert.ok(told === null ? difference === null : difference?.startsWith(told), difference ?? "");
  }
});
