/** Only the client that asked for a grammar knows of it: servers do not say so. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sampling, Tool, ToolChoice } from "../../../base/schema/message.ts";
import { isUnderGrammar } from "../../../engines/chat/grammar.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const tool = (strict?: boolean): Tool => ({
  name: "bash",
  kind: "function",
  parameters: { type: "object" },
  ...(strict === undefined ? {} : { strict }),
});
const under = (sampling: Sampling, tools: Tool[] = [], tool_choice: ToolChoice | null = null, holdsToolsToGrammar = false) =>
  isUnderGrammar({ sampling, tools, tool_choice }, { holdsToolsToGrammar });

test("a grammar that was asked for by a field of any engine is one", () => {
  for (const field of [
    "structured_outputs",
    "response_format",
    "guided_regex",
    "regex",
    "ebnf",
    "json_schema",
    "structural_tag",
    "grammar",
  ])
    assert.ok(under({ [field]: "x" }), field);
  assert.ok(!under({ temperature: 1, response_format: undefined, structured_outputs: null }));
});

test("calls are under one where a tool must be called, is strict, or only one may be, and with llama-server always", () => {
  assert.ok(!under({}, [tool()]));
  assert.ok(!under({ parallel_tool_calls: true }, [tool(false)], "auto"));
  assert.ok(under({}, [tool()], "required"));
  assert.ok(under({}, [tool()], { name: "bash" }));
  assert.ok(under({}, [tool(), tool(true)]));
  assert.ok(under({ parallel_tool_calls: false }, [tool()], "auto"));
  assert.ok(under({}, [tool()], null, true));
  for (const [tools, choice] of [
    [[], null],
    [[tool(true)], "none"],
  ] as [Tool[], ToolChoice | null][])
    assert.ok(!under({ parallel_tool_calls: false }, tools, choice, true));
});

test("a harness that asks for it has calls that are recorded as such and not trained", async () => {
  const tools = [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }];
  for (const [asked, expected] of [
    [{ tools }, false],
    [{ tools, tool_choice: "required" }, true],
    [{ tools, parallel_tool_calls: false }, true],
  ] as const) {
    await using at = await proxyAt(() => ({ tool_calls: [{ name: "bash", arguments: "{}" }] }));
    const client = await at.open({ purpose: "train" });
    await client.say([{ role: "user", content: "hi" }], asked);
    const [call] = (await client.trajectory()).calls;
    assert.equal(call?.logprob_semantics.grammar, expected, JSON.stringify(asked));
  }
});
