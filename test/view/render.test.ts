/** What `alidade show` prints, and that nothing an agent wrote can act on who reads it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { FidelitySummarizer } from "../../view/fidelity/index.ts";
import { renderHtml } from "../../view/render-html.ts";
import { renderText } from "../../view/render-text.ts";
import { toSessionView } from "../../view/session-view.ts";
import { assistant, LogBuilder, recognised, system, thinking, toolCall, toolResult, user } from "../fakes/records/log-builder.ts";

/** A turn under a grammar, its abandoned twin, and a branch because reasoning was dropped. */
function session(over: { text?: string; result?: string } = {}): Trajectory {
  const log = new LogBuilder({ harness: "pi" });
  const start = [system("be good"), user(over.text ?? "fix the ranges")];
  const says = assistant(thinking("look first"), "Let me look.", toolCall("1", '{"command":"ls"}'));
  log.call({ messages: start, says, delivery: "cut" });
  const logprobs = log.said(says).map((_, at) => (at === 1 ? 0 : -0.5));
  const b = log.call({ messages: start, says, grammar: true, logprobs });
  log.call({
    messages: [...start, assistant("Let me look.", toolCall("1", '{"command":"ls"}')), toolResult("1", over.result ?? "merge.ts")],
    says: assistant("All tests pass."),
    parent: b,
    restored: [recognised(b, 2, { status: "restored", differences: ["reasoning_dropped"] })],
    decoded: { parent_call_id: b, same_text: false, parent_text: "<think> look", child_text: "Let me" },
  });
  return reconstruct(log.entries, { reward: 1, task: { id: "merge-ranges" }, group: { size: 4 } });
}

test("the text shows turns, tool calls, results, tokens and mask, the reward, and where it branches and why", () => {
  const text = renderText(session());
  for (const words of [
    "merge-ranges",
    /reward +1\n/,
    "Turn 2  main, delivered, stop",
    "prompt 10, sampled 11: not trained (grammar), 1 forced",
    "10 grammar (It was sampled under a grammar",
    "(the request of turn 1 again)",
    'calls      bash {"command":"ls"}',
    "result     merge.ts",
    "diverged from turn 2 at token 10: reasoning dropped",
    'before: "<think> look"',
    "sampled 11: not trained (undelivered)",
    /x▒x/,
    /██/,
    /row inflation +1\.\d+/,
  ])
    assert.match(text, typeof words === "string" ? new RegExp(RegExp.escape(words)) : words);
});

test("long results are shortened, and --full shows them whole", () => {
  const result = Array.from({ length: 50 }, (_, line) => `line ${line}`).join("\n");
  assert.match(renderText(session({ result })), /line 7 … \(\d+ more characters\)/);
  assert.match(renderText(session({ result }), { full: true }), /line 49/);
});

test("the page has what the rollout changed, output in a fixed face, and strips of one scale", () => {
  const diff = "--- a/x.js\n+++ b/x.js\n@@ -1 +1 @@\n-old\n+<b>new</b>\n";
  const work = [
    { path: "/w/x.js", change: "modified" as const, diff, note: null },
    { path: "/w/y", change: "added" as const, diff: null, note: "a link to /etc" },
  ];
  const html = renderHtml(session(), null, work);
  assert.match(
    html,
    /<summary>\/w\/x\.js <em>modified<\/em><\/summary><pre>@@ -1 \+1 @@\n<del>-old<\/del>\n<ins>\+&lt;b&gt;new&lt;\/b&gt;<\/ins><\/pre>/,
  );
  assert.match(html, /a link to \/etc/);
  assert.doesNotMatch(html, /\+\+\+ b\/x\.js/);
  assert.match(renderHtml(session(), null, "The changes cannot be shown here: no <Docker>"), /cannot be shown here: no &lt;Docker&gt;/);
  assert.doesNotMatch(renderHtml(session()), /<h2>Changes/);
  const widths = [...html.matchAll(/class="strip" style="width:([\d.]+)%"/g)].map((match) => Number(match[1]));
  assert.ok(widths.length > 1 && widths.includes(100) && widths.some((width) => width < 100), widths.join());
});

test("escape sequences and direction marks are written out, in the terminal and on the page", () => {
  const hostile = "\u001b[2J\u001b]0;owned\u0007 \u202etxt.exe \u0000 \u061c \u00ad \u{e0041} \ud800 end";
  for (const rendered of [renderText(session({ text: hostile })), renderHtml(session({ text: hostile }))]) {
    assert.match(rendered, /\\x1b\[2J\\x1b\]0;owned\\x07 \\u202etxt\.exe \\x00 \\u061c \\xad \\u\{e0041\}/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the point
    assert.doesNotMatch(rendered, /[\u0000-\u0008\u000b-\u001f\u202e]/);
    assert.ok(rendered.isWellFormed());
  }
});

test("further lines of an error are set in: none of them looks like a line of the report", () => {
  const log = new LogBuilder();
  const error = { code: "engine_error", message: "no\nTurn 2  main, delivered, stop\n  reward    1", status: 500 };
  log.call({ messages: [user("hi")], delivery: "error", error });
  const text = renderText(reconstruct(log.entries));
  assert.match(text, /error engine_error: no\n {11}Turn 2/);
  assert.doesNotMatch(text, /^ {0,2}(Turn 2|reward +1$)/m);
});

test("without colour there is no escape sequence at all, with colour only ours", () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what this is about
  const sequences = /\u001b\[\d*m/g;
  assert.equal(renderText(session()).match(sequences), null);
  const colored = renderText(session(), { color: true });
  assert.ok(sequences.test(colored));
  assert.equal(colored.replaceAll(sequences, ""), renderText(session()));
});

test("the page escapes what was said, loads nothing and runs nothing", () => {
  const html = renderHtml(session({ text: `<script>alert("1")</script><img src=x onerror='alert(1)'>`, result: "</pre></section>&amp;" }));
  assert.match(html, /&lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt;&lt;img src=x onerror=&#39;alert\(1\)&#39;&gt;/);
  assert.match(html, /&lt;\/pre&gt;&lt;\/section&gt;&amp;amp;/);
  assert.doesNotMatch(html, /<(script|img|link|iframe|object)\b/);
  assert.doesNotMatch(html, /(src|href)="(?!#)/);
  assert.match(html, /default-src 'none'/);
});

test("ids and labels of the record are escaped too, for a trajectory file may come from anywhere", () => {
  const trajectory = session();
  const hostile = `"><script>x</script>`;
  trajectory.session_id = hostile;
  trajectory.task.id = hostile;
  for (const call of trajectory.calls) call.agent = hostile;
  for (const trace of trajectory.traces) [trace.agent, trace.trace_id] = [hostile, hostile];
  assert.doesNotMatch(renderHtml(trajectory), /<script/);
});

test("the page's elements are balanced", () => {
  const html = renderHtml(session());
  const open: string[] = [];
  for (const [, closing, name] of html.replace(/<style>[\s\S]*<\/style>/, "").matchAll(/<(\/?)([a-z][a-z0-9]*)/g)) {
    if (["meta", "hr", "br"].includes(name as string)) continue;
    if (closing === "") open.push(name as string);
    else assert.equal(open.pop(), name);
  }
  assert.deepEqual(open, []);
});

test("a session without calls, ids or reward is shown as what it is", () => {
  const empty = reconstruct(new LogBuilder().entries);
  assert.match(renderText(empty), /reward +none \(null: nothing was measured\)/);
  assert.match(renderHtml(empty), /no traces/);
  const log = new LogBuilder();
  log.call({ messages: [user("hi")], prompt: null });
  assert.match(renderText(reconstruct(log.entries)), /no token ids/);
});

test("the turn's line, the record and fidelity give one reason for a call without token ids", () => {
  const error = { code: "engine_error", message: "the stream broke", status: 502 };
  const calls: [string, Omit<Parameters<LogBuilder["call"]>[0], "messages">][] = [
    ["failed", { error, delivery: "error" }],
    ["undelivered", { delivery: "cut" }],
    ["auxiliary", { request_class: "title" }],
    ["no_token_ids", {}],
  ];
  for (const [reason, call] of calls) {
    const log = new LogBuilder();
    log.call({ messages: [user("hi")], prompt: null, sampled: null, ...call });
    const trajectory = reconstruct(log.entries);
    const fidelity = new FidelitySummarizer({});
    fidelity.add(trajectory);
    const [turn] = toSessionView(trajectory).turns;
    const excluded = { [reason]: 5 };
    assert.deepEqual([trajectory.fidelity.excluded, fidelity.summary.tokens.excluded, turn?.tokens.reason], [excluded, excluded, reason]);
    const line = reason === "no_token_ids" ? "; no token ids\n" : `; no token ids: not trained (${reason})\n`;
    for (const shown of [renderText(trajectory), renderHtml(trajectory).replaceAll("</p>", "\n")]) assert.ok(shown.includes(line), shown);
  }
});

test("a long chain of turns is one line of the branches, not a staircase", () => {
  const log = new LogBuilder();
  let messages = [user("u")];
  for (let turn = 0; turn < 40; turn++) {
    const says = assistant(`step ${turn}`);
    log.call({ messages, says });
    messages = [...messages, says, user("on")];
  }
  assert.match(renderText(reconstruct(log.entries)), /\n {2}turns 1 → 2 → .* → 40: begins a conversation/);
});

/** The lines of the section `Tree`. */
function treeOf(trajectory: Trajectory): string[] {
  const [, rest = ""] = renderText(trajectory).split("\nTree\n");
  return rest
    .split("\n\n")[0]!
    .split("\n")
    .map((line) => line.slice(2));
}

test("the tree hangs every branch on the run that it parts from, with its agent, its cause and what it is good for", () => {
  const log = new LogBuilder();
  const start = [system("be good"), user("fix it")];
  const says = assistant("two ways", toolCall("1", "{}"));
  const a = log.call({ messages: start, says });
  const main = [...start, says, toolResult("1", "main way")];
  log.call({ messages: main, parent: a, restored: [recognised(a, 2)] });
  const forked = [...start, says, toolResult("1", "other way")];
  const c = log.call({ messages: forked, agent: "review", request_class: "sub_agent" });
  log.call({ messages: [...forked, assistant("ko"), user("on")], agent: "review", request_class: "sub_agent", parent: c });
  log.call({ messages: start, says: assistant("again"), delivery: "cut" });
  assert.deepEqual(treeOf(reconstruct(log.entries)), [
    "turns 1 → 2: begins a conversation; main, 8 of 8 sampled tokens trainable",
    "└─ turn 3: continues turn 1 exactly; review (sub agent), 2 of 2 sampled tokens trainable",
    "   ↳ turn 4: diverged from turn 3 at token 20: edited; review (sub agent), 2 of 2 sampled tokens trainable",
    "turn 5: begins a conversation; main, 0 of 2 sampled tokens trainable, 5 undelivered",
  ]);
});

test("a session that drifts at every turn is a list, not a staircase", () => {
  const log = new LogBuilder();
  let messages = [user("u")];
  for (let turn = 0; turn < 30; turn++) {
    const says = assistant(`step ${turn}`);
    log.call({ messages, says, sampled: log.said(says).with(0, 9000 + turn) });
    messages = [...messages, says, user("on")];
  }
  const lines = treeOf(reconstruct(log.entries));
  assert.equal(lines.length, 30);
  for (const line of lines.slice(1)) assert.match(line, /^↳ turn \d+: unknown from turn \d+/);
});
