/**
 * The ways in which a harness's next request fails to be the last one and its answer, each as the smallest session that
 * shows it, with the edges and the tree that it must give and the rows that come of it.
 */
import type { Message, Tool } from "../../base/schema/message.ts";
import type { CallOutcome } from "../../base/schema/trajectory.ts";
import { assistant, LogBuilder, recognised, system, thinking, toolCall, toolResult, user } from "../fakes/records/log-builder.ts";
import { turn } from "./rebuilt.ts";

type Outcome = (typeof CallOutcome.options)[number];

export type NamedCase = {
  name: string;
  log(): LogBuilder;
  /** `<call> <match> <parent> <cause>`, calls as a, b, c … */
  edges: string[];
  /** `<call> <kind> <tokens> <+ or why not>`, indented. */
  tree: string[];
  /** Rows by selection. */
  rows: { strict: number; tolerant?: number; "per-call"?: number; "main-agent"?: number; "by-agent"?: number };
  /** Reason -> tokens; default none. */
  excluded?: Record<string, number>;
  replayed?: number;
  /** Default: all delivered. */
  outcomes?: Outcome[];
};

const start = [system("be good"), user("fix it")];
const tool = (name: string): Tool => ({ name, parameters: {}, kind: "function" });

function session(play: (log: LogBuilder) => void): () => LogBuilder {
  return () => {
    const log = new LogBuilder();
    play(log);
    return log;
  };
}

/** One tool call, and what the harness sends back of it. */
function toolTurn(says: Message, sent: Message, results: Message[], restored?: Parameters<typeof recognised>[2]): () => LogBuilder {
  return session((log) => {
    const a = log.call({ messages: start, says });
    const messages = [...start, sent, ...results];
    log.call({ messages, parent: a, restored: restored === undefined ? [] : [recognised(a, 2, restored)] });
  });
}

/** A loop of two calls, in which the first result stands as `text` in the third request. */
function cleared(text: string): () => LogBuilder {
  return session((log) => {
    const first = assistant(toolCall("1", '{"cmd":  "ls"}'));
    const a = log.call({ messages: start, says: first });
    const second = turn(start, first, toolResult("1", "a list of many files"));
    const edit = assistant(toolCall("2", '{"cmd":"ed"}'));
    const respelled = recognised(a, 2, { status: "restored", differences: ["arguments"] });
    const b = log.call({ messages: second, says: edit, parent: a, restored: [respelled] });
    const third = [...start, first, toolResult("1", text), edit, toolResult("2", "done")];
    log.call({
      messages: third,
      parent: b,
      restored: [respelled, recognised(b, 4, { status: "restored", differences: ["arguments"] })],
      decoded: { parent_call_id: b, same_text: false, parent_text: "a list", child_text: text },
    });
  });
}

export const namedCases: NamedCase[] = [
  {
    name: "an append-only tool loop",
    log: session((log) => {
      const first = assistant("let me see", toolCall("1", '{"cmd":"ls"}'));
      const a = log.call({ messages: start, says: first });
      const second = turn(start, first, toolResult("1", "a.txt b.txt"));
      const edit = assistant(toolCall("2", '{"cmd":"ed"}'));
      const b = log.call({ messages: second, says: edit, parent: a, restored: [recognised(a, 2)] });
      const third = turn(second, edit, toolResult("2", "done"));
      log.call({ messages: third, says: assistant("all done"), parent: b, restored: [recognised(b, 4)] });
    }),
    edges: ["a root", "b exact a", "c exact b"],
    tree: [
      "a prompt 9",
      "  a sampled 7 +",
      "    b observation 5",
      "      b sampled 4 +",
      "        c observation 4",
      "          c sampled 3 +",
    ],
    rows: { strict: 1, tolerant: 1, "per-call": 3, "main-agent": 1, "by-agent": 1 },
  },
  {
    name: "a retry after an answer that never arrived",
    log: session((log) => {
      log.call({ messages: start, says: assistant("first words"), delivery: "cut" });
      const says = assistant("second words");
      const b = log.call({ messages: start, says });
      log.call({ messages: [...start, says, user("go on")], parent: b });
    }),
    edges: ["a root", "b root", "c exact b"],
    tree: ["a prompt 9", "  a sampled 3 undelivered", "  b sampled 3 +", "    c observation 5", "      c sampled 2 +"],
    rows: { strict: 1 },
    excluded: { undelivered: 3 },
    outcomes: ["undelivered", "delivered", "delivered"],
  },
  {
    name: "three retries of one body, of which the last arrives",
    log: session((log) => {
      const says = assistant("same words");
      for (const delivery of ["cut", "cut", "complete"] as const) log.call({ messages: start, says, delivery });
      log.call({ messages: [...start, says, user("go on")] });
    }),
    edges: ["a root", "b root", "c root", "d exact c"],
    tree: [
      "a prompt 9",
      "  a sampled 3 undelivered",
      "  b sampled 3 undelivered",
      "  c sampled 3 +",
      "    d observation 5",
      "      d sampled 2 +",
    ],
    rows: { strict: 1 },
    excluded: { undelivered: 6 },
    outcomes: ["undelivered", "undelivered", "delivered", "delivered"],
  },
  {
    name: "parallel sub-agents with the identical prompt",
    log: session((log) => {
      const says = assistant("same words", toolCall("1", "{}"));
      const a = log.call({ messages: start, says, begin: 2000, finish: 2100, agent: "one", request_class: "sub_agent" });
      const b = log.call({ messages: start, says, begin: 2001, finish: 2101, agent: "two", request_class: "sub_agent" });
      const next = turn(start, says, toolResult("1", "result"));
      log.call({
        messages: next,
        parent: b,
        restored: [recognised(b, 2)],
        begin: 2200,
        finish: 2300,
        agent: "two",
        request_class: "sub_agent",
      });
      log.call({
        messages: next,
        parent: a,
        restored: [recognised(a, 2)],
        begin: 2201,
        finish: 2301,
        agent: "one",
        request_class: "sub_agent",
      });
    }),
    edges: ["a root", "b root", "c exact b", "d exact a"],
    tree: [
      "a prompt 9",
      "  a sampled 6 +",
      "    d observation 4",
      "      d sampled 2 +",
      "  b sampled 6 +",
      "    c observation 4",
      "      c sampled 2 +",
    ],
    rows: { strict: 2, tolerant: 2, "per-call": 4, "main-agent": 0, "by-agent": 2 },
  },
  {
    name: "a sub-agent that inherits the history",
    log: session((log) => {
      const says = assistant("two ways", toolCall("1", "{}"));
      const a = log.call({ messages: start, says });
      log.call({ messages: turn(start, says, toolResult("1", "main way")), parent: a, restored: [recognised(a, 2)] });
      log.call({ messages: turn(start, says, toolResult("1", "other way")), agent: "review", request_class: "sub_agent" });
    }),
    edges: ["a root", "b exact a", "c exact a"],
    tree: [
      "a prompt 9",
      "  a sampled 6 +",
      "    b observation 1",
      "      b observation 4",
      "        b sampled 2 +",
      "      c observation 4",
      "        c sampled 2 +",
    ],
    rows: { strict: 2, tolerant: 2, "per-call": 3, "main-agent": 1, "by-agent": 2 },
  },
  {
    name: "a fork: the user goes back and says something else",
    log: session((log) => {
      const says = assistant("one way");
      const a = log.call({ messages: start, says });
      log.call({ messages: [...start, says, user("go on")], parent: a });
      log.call({ messages: [...start, says, user("no wait")], parent: a });
    }),
    edges: ["a root", "b exact a", "c exact a"],
    tree: [
      "a prompt 9",
      "  a sampled 3 +",
      "    b observation 1",
      "      b observation 4",
      "        b sampled 2 +",
      "      c observation 4",
      "        c sampled 2 +",
    ],
    rows: { strict: 2, tolerant: 2, "per-call": 3, "main-agent": 2, "by-agent": 2 },
  },
  {
    name: "a turn cut off by its length, closed by the template",
    log: session((log) => {
      const says = assistant("a long story about");
      const a = log.call({ messages: start, says, sampled: log.said(says).with(-1, 77), finish_reason: "length" });
      log.call({ messages: [...start, says, user("more")], parent: a });
    }),
    edges: ["a root", "b diverged a truncated"],
    tree: ["a prompt 9", "  a sampled 4 +", "    a sampled 1 +", "    b observation 5", "      b sampled 2 +"],
    rows: { strict: 2, tolerant: 2, "per-call": 2 },
  },
  {
    name: "a turn ended by a stop string, and a literal end token inside a body",
    log: session((log) => {
      const says = assistant("half");
      const a = log.call({ messages: start, says, sampled: log.tokens("half "), finish_reason: "stop" });
      const closed = [...log.prompt(start), ...log.tokens("half "), 2, ...log.render(user("on")), ...log.tokens("<assistant> ")];
      const b = log.call({ messages: [...start, says, user("on")], prompt: closed, sampled: [70, 2, 71, 2], parent: a });
      log.call({ messages: [...start, says, user("on"), assistant("x"), user("y")], prompt: [...closed, 70, 2, 71, 2, 9], parent: b });
    }),
    edges: ["a root", "b exact a", "c exact b"],
    tree: [
      "a prompt 9",
      "  a sampled 1 +",
      "    b observation 5",
      "      b sampled 4 +",
      "        c observation 1",
      "          c sampled 2 +",
    ],
    rows: { strict: 1, tolerant: 1, "per-call": 3 },
  },
  {
    name: "a prefill continuation: the half turn is sent back to be gone on with",
    log: session((log) => {
      const says = assistant("half");
      const a = log.call({ messages: start, says, sampled: log.tokens("half "), finish_reason: "length" });
      log.call({ messages: [...start, says], prompt: [...log.prompt(start), ...log.tokens("half ")], sampled: [70, 2], parent: a });
    }),
    edges: ["a root", "b exact a"],
    tree: ["a prompt 9", "  a sampled 1 +", "    b sampled 2 +"],
    rows: { strict: 1, tolerant: 1, "per-call": 2 },
  },
  {
    name: "reasoning that the harness drops",
    log: toolTurn(
      assistant("ok", thinking("hm well"), toolCall("1", "{}")),
      assistant("ok", toolCall("1", "{}")),
      [toolResult("1", "result")],
      { status: "restored", differences: ["reasoning_dropped"] },
    ),
    edges: ["a root", "b diverged a reasoning_dropped"],
    tree: ["a prompt 9", "  a sampled 1 +", "    a sampled 8 +", "    b observation 8", "      b sampled 2 +"],
    rows: { strict: 2, tolerant: 2, "per-call": 2 },
  },
  {
    name: "arguments that come back in another spelling",
    log: toolTurn(assistant(toolCall("1", '{"a":1,"b":2}')), assistant(toolCall("1", '{"b": 2, "a": 1}')), [toolResult("1", "result")]),
    edges: ["a root", "b diverged a arguments_reserialised"],
    tree: ["a prompt 9", "  a sampled 2 +", "    a sampled 2 +", "    b observation 9", "      b sampled 2 +"],
    rows: { strict: 2, tolerant: 2 },
  },
  {
    name: "arguments with an added key",
    log: toolTurn(assistant(toolCall("1", '{"a":1}')), assistant(toolCall("1", '{"a":1,"timeout":9}')), [toolResult("1", "result")]),
    edges: ["a root", "b diverged a arguments_changed"],
    tree: ["a prompt 9", "  a sampled 2 +", "    a sampled 2 +", "    b observation 6", "      b sampled 2 +"],
    rows: { strict: 2 },
  },
  {
    name: "arguments with an added key, seen by the proxy",
    log: toolTurn(assistant(toolCall("1", '{"a":1}')), assistant(toolCall("1", '{"a":1,"timeout":9}')), [toolResult("1", "result")], {
      status: "edited",
      differences: ["arguments"],
    }),
    edges: ["a root", "b diverged a arguments_changed"],
    tree: ["a prompt 9", "  a sampled 2 +", "    a sampled 2 +", "    b observation 6", "      b sampled 2 +"],
    rows: { strict: 2 },
  },
  {
    name: "a tool call that comes back as text",
    log: toolTurn(assistant("look", toolCall("1", "{}")), assistant("look", "<call> bash {}"), [user("result")], {
      status: "edited",
      differences: ["tool_calls"],
      evidence: "content",
    }),
    edges: ["a root", "b exact a"],
    // The harness wrote the very text: what the engine saw is what was said, whatever form it travelled in.
    tree: ["a prompt 9", "  a sampled 5 +", "    b observation 4", "      b sampled 2 +"],
    rows: { strict: 1 },
  },
  {
    name: "a tool call that comes back as other text",
    log: toolTurn(assistant("look", toolCall("1", "{}")), assistant("look", "I called bash"), [user("result")]),
    edges: ["a root", "b diverged a tool_calls_changed"],
    tree: ["a prompt 9", "  a sampled 1 +", "    a sampled 4 +", "    b observation 8", "      b sampled 2 +"],
    rows: { strict: 2 },
  },
  {
    name: "parallel tool calls that come back reordered",
    log: toolTurn(
      assistant(toolCall("1", "{}", "read"), toolCall("2", "{}", "list")),
      assistant(toolCall("2", "{}", "list"), toolCall("1", "{}", "read")),
      [toolResult("2", "two"), toolResult("1", "one")],
    ),
    edges: ["a root", "b diverged a tool_calls_changed"],
    tree: ["a prompt 9", "  a sampled 1 +", "    a sampled 6 +", "    b observation 13", "      b sampled 2 +"],
    rows: { strict: 2 },
  },
  {
    name: "results of earlier calls that the harness cleared, behind a turn whose arguments came back in another spelling",
    log: cleared("[cleared]"),
    edges: ["a root", "b exact a", "c diverged b history_cleared"],
    tree: [
      "a prompt 9",
      "  a sampled 6 +",
      "    b observation 1",
      "      b observation 7",
      "        b sampled 4 +",
      "      c observation 11",
      "        c sampled 2 +",
    ],
    rows: { strict: 2 },
  },
  {
    name: "a result of an earlier call that the harness wrote anew",
    log: cleared("now it says much more than it did before"),
    edges: ["a root", "b exact a", "c diverged b edited"],
    tree: [
      "a prompt 9",
      "  a sampled 6 +",
      "    b observation 1",
      "      b observation 7",
      "        b sampled 4 +",
      "      c observation 19",
      "        c sampled 2 +",
    ],
    rows: { strict: 2 },
  },
  {
    name: "a reminder injected into an earlier message",
    log: session((log) => {
      const says = assistant("ok");
      const a = log.call({ messages: start, says });
      log.call({ messages: [system("be good"), user("fix it (mind the plan)"), says, user("go on")], parent: a });
    }),
    edges: ["a root", "b diverged a injected"],
    tree: ["a prompt 7", "  a prompt 2", "    a sampled 2 +", "  b prompt 12", "    b sampled 2 +"],
    rows: { strict: 2, tolerant: 2 },
  },
  {
    name: "a reminder injected between two messages",
    log: session((log) => {
      const says = assistant("ok");
      const a = log.call({ messages: start, says });
      log.call({ messages: [system("be good"), system("plan mode"), user("fix it"), says, user("go on")], parent: a });
    }),
    edges: ["a root", "b diverged a system_changed"],
    tree: ["a prompt 4", "  a prompt 5", "    a sampled 2 +", "  b prompt 16", "    b sampled 2 +"],
    rows: { strict: 2 },
  },
  {
    name: "a reminder injected after the first message of the user",
    log: session((log) => {
      const says = assistant("ok");
      const next = [...start, says, user("go on")];
      const a = log.call({ messages: start, says });
      const b = log.call({ messages: next, says, parent: a });
      log.call({ messages: [...start, says, user("mind the plan"), user("go on"), says, user("and")], parent: b });
    }),
    edges: ["a root", "b exact a", "c diverged b injected"],
    tree: [
      "a prompt 9",
      "  a sampled 2 +",
      "    b observation 1",
      "      b observation 4",
      "        b sampled 2 +",
      "      c observation 15",
      "        c sampled 2 +",
    ],
    rows: { strict: 2 },
  },
  {
    name: "a reminder appended behind the tool result",
    log: session((log) => {
      const says = assistant(toolCall("1", "{}"));
      const a = log.call({ messages: start, says });
      log.call({
        messages: [...turn(start, says, toolResult("1", "result")), user("mind the plan")],
        parent: a,
        restored: [recognised(a, 2)],
      });
    }),
    edges: ["a root", "b exact a"],
    tree: ["a prompt 9", "  a sampled 4 +", "    b observation 9", "      b sampled 2 +"],
    rows: { strict: 1 },
  },
  {
    name: "tool lists that change, then another system prompt",
    log: session((log) => {
      const says = assistant("ok");
      const a = log.call({ messages: start, says, tools: [tool("bash")] });
      const next = [...start, says, user("more")];
      const rendered = log.prompt([system("be edit"), ...next.slice(1)]);
      const b = log.call({ messages: next, tools: [tool("bash"), tool("edit")], prompt: rendered, parent: a });
      const last = [system("be bad"), ...next.slice(1), says, user("most")];
      log.call({ messages: last, tools: [tool("bash"), tool("edit")], parent: b });
    }),
    edges: ["a root", "b diverged a tools_changed", "c diverged b system_changed"],
    tree: ["a prompt 2", "  a prompt 7", "    a sampled 2 +", "  b prompt 13", "    b sampled 2 +", "  c prompt 19", "    c sampled 2 +"],
    rows: { strict: 3, tolerant: 3 },
  },
  {
    name: "weights that change between two calls and in the middle of a third",
    log: session((log) => {
      const [v1, v2] = [
        { version: "v1", step: 1 },
        { version: "v2", step: 2 },
      ];
      const says = assistant("one two");
      const a = log.call({ messages: start, says, policy: v1 });
      const next = [...start, says, user("go on")];
      const b = log.call({ messages: next, says, policy: v2, parent: a });
      log.call({ messages: [...next, says, user("go on")], says, policy: v1, policy_end: v2, parent: b });
    }),
    edges: ["a root", "b exact a", "c exact b"],
    tree: [
      "a prompt 9",
      "  a sampled 3 +",
      "    b observation 5",
      "      b sampled 3 +",
      "        c observation 5",
      "          c sampled 3 unattributed_policy",
    ],
    rows: { strict: 1, "per-call": 2 },
    excluded: { unattributed_policy: 3 },
  },
  {
    name: "a turn dropped by the harness after a format error",
    log: session((log) => {
      const first = assistant(toolCall("1", "{}"));
      const a = log.call({ messages: start, says: first });
      const asked = turn(start, first, toolResult("1", "result"));
      log.call({ messages: asked, says: assistant("no call at all"), parent: a, restored: [recognised(a, 2)] });
      log.call({ messages: [...asked, user("call a tool")], says: assistant(toolCall("2", "{}")) });
    }),
    edges: ["a root", "b exact a", "c exact a"],
    tree: [
      "a prompt 9",
      "  a sampled 4 +",
      "    b observation 3",
      "      b observation 1",
      "        b sampled 5 +",
      "      c observation 6",
      "        c sampled 4 +",
    ],
    rows: { strict: 2, "per-call": 3 },
  },
  {
    name: "the first turn dropped after a format error: there is nothing before it to go on from",
    log: session((log) => {
      const a = log.call({ messages: start, says: assistant("no call at all") });
      log.call({ messages: [...start, user("call a tool")], says: assistant(toolCall("2", "{}")) });
      log.call({ messages: [...start, user("call a tool"), assistant(toolCall("2", "{}")), toolResult("2", "ok")] });
      return a;
    }),
    edges: ["a root", "b diverged a turn_dropped", "c exact b"],
    tree: [
      "a prompt 8",
      "  a prompt 1",
      "    a sampled 5 +",
      "  b prompt 6",
      "    b sampled 4 +",
      "      c observation 4",
      "        c sampled 2 +",
    ],
    rows: { strict: 2 },
  },
  {
    name: "a turn of which the client read only a part",
    log: session((log) => {
      const a = log.call({ messages: start, says: assistant("one two three four"), delivery: "cut" });
      const part = [...start, assistant("one two"), user("go on")];
      log.call({
        messages: part,
        parent: a,
        restored: [recognised(a, 2, { status: "edited", evidence: "content", differences: ["text_cut"] })],
      });
    }),
    edges: ["a root", "b diverged a edited"],
    tree: ["a prompt 9", "  a sampled 2 undelivered", "    a sampled 3 undelivered", "    b observation 6", "      b sampled 2 +"],
    rows: { strict: 1 },
    excluded: { undelivered: 5 },
    outcomes: ["partial", "delivered"],
  },
  {
    name: "a turn whose tool calls did not arrive, only its text",
    log: session((log) => {
      const a = log.call({ messages: start, says: assistant("one", toolCall("1", "{}")), delivery: "cut" });
      const part = [...start, assistant("one"), user("go on")];
      log.call({ messages: part, parent: a, restored: [recognised(a, 2, { status: "edited", differences: ["tool_calls"] })] });
    }),
    edges: ["a root", "b diverged a tool_calls_changed"],
    tree: ["a prompt 9", "  a sampled 1 undelivered", "    a sampled 4 undelivered", "    b observation 6", "      b sampled 2 +"],
    rows: { strict: 1 },
    excluded: { undelivered: 5 },
    outcomes: ["partial", "delivered"],
  },
  {
    name: "the same text in other tokens, twice in one conversation",
    log: session((log) => {
      const says = assistant("fishing");
      const a = log.call({ messages: start, says, sampled: [901, 902, 2] });
      const next = [...start, says, user("more")];
      const decoded = { same_text: true, parent_text: "fishing", child_text: "fishing more" };
      const b = log.call({ messages: next, says, sampled: [901, 902, 2], decoded: { ...decoded, parent_call_id: a }, parent: a });
      log.call({ messages: [...next, says, user("most")], decoded: { ...decoded, parent_call_id: b }, parent: b });
    }),
    edges: ["a root", "b same_text a retokenised", "c same_text b retokenised"],
    tree: ["a prompt 9", "  a sampled 3 +", "  b prompt 6", "    b sampled 3 +", "    c prompt 6", "      c sampled 2 +"],
    rows: { strict: 3, tolerant: 1, "per-call": 3 },
  },
  {
    name: "first turns that were given again from another rollout's record",
    log: session((log) => {
      const says = assistant("step one");
      const a = log.call({ messages: start, says, replayed_from: "callofanother" });
      log.call({ messages: [...start, says, user("go on")], parent: a });
    }),
    edges: ["a root", "b exact a"],
    tree: ["a prompt 9", "  a sampled 3 replayed", "    b observation 5", "      b sampled 2 +"],
    rows: { strict: 1, "per-call": 1 },
    replayed: 3,
  },
  {
    name: "a compaction whose summary is gone on with",
    log: session((log) => {
      const says = assistant("step one");
      const a = log.call({ messages: start, says });
      const asked = [...start, says, user("summarise")];
      log.call({ messages: asked, says: assistant("the gist"), parent: a, request_class: "compaction" });
      log.call({ messages: [start[0] as Message, user("the gist")], says: assistant("step two") });
    }),
    edges: ["a root", "b exact a", "c diverged b compacted"],
    tree: [
      "a prompt 5",
      "  a prompt 4",
      "    a sampled 3 +",
      "      b observation 4",
      "        b sampled 3 +",
      "  c prompt 4",
      "    c sampled 3 +",
    ],
    rows: { strict: 2, tolerant: 2, "per-call": 3 },
  },
];
