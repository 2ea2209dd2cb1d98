/** Runs the real program of each harness that supports tool servers: fast, late, over stdio, large results, errors, unknown tools. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { Harness } from "../../harnesses/harness.ts";
import { harnesses } from "../../harnesses/index.ts";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { toolNameIn } from "../fakes/tools/tool-name.ts";
import { picture, placeOf, type Seen, sdkService, shopServer } from "../fakes/tools/tool-services.ts";
import { toolsAt } from "../fakes/tools/tools-at.ts";
import { installedPack } from "./installed-pack.ts";
import { runCommand, temporaryPlace, writeBelow } from "./run-harness.ts";

/** A CLI starts in about a second; on a loaded machine in ten times that. */
const timeout = 300_000;

type Step = [server: string, tool: string, args: Record<string, unknown>];

const steps: Step[] = [
  ["shop", "find_order", { id: "W1" }],
  ["late-shop", "find_order", { id: "W2" }],
  ["pipe", "find_order", { id: "W3" }],
  ["shop", "screen", {}],
  ["shop", "large", { bytes: 1_000_000 }],
  ["shop", "fail", {}],
  ["shop", "no_such_tool", {}],
];
const toolNames = ["cancel_order", "fail", "find_order", "large", "screen", "wait"];
const servers = ["shop", "late-shop", "pipe"];

for (const harness of harnesses.filter(({ tools }) => tools))
  test(`${harness.name} has all tools from its first request on, and calls each as the model asks`, { timeout }, async (t) => {
    const run = await launched(t, harness);
    if (run === null) return;
    assert.equal(run.ended.exit_code, 0, run.ended.stderr);
    assert.equal(run.requests.length, steps.length + 1);
    const [first] = run.requests;
    for (const server of servers)
      for (const tool of toolNames) assert.ok(toolNameIn(first, server, tool), `${server} ${tool} in the first request`);
    const { tool_runs, fidelity } = run.trajectory;
    assert.deepEqual(
      tool_runs?.map(({ server, tool, outcome, unasked }) => [server, tool, outcome, unasked]),
      [
        ["shop", "find_order", "ok", false],
        ["late-shop", "find_order", "ok", false],
        ["pipe", "find_order", "ok", false],
        ["shop", "screen", "ok", false],
        ["shop", "large", "ok", false],
        ["shop", "fail", "error", false],
      ],
    );
    const last = JSON.stringify(run.requests.at(-1)?.messages);
    for (const words of ["order W1 is open", "order W2 is open", "order W3 is open", "out of paper"])
      assert.ok(last.includes(words), words);
    assert.ok(last.includes(picture), "the picture's own bytes reach the engine");
    assert.deepEqual(
      Object.keys(fidelity.causes).filter((cause) => cause === "tools_changed"),
      [],
    );
    assert.equal(new Set(run.requests.map(({ tools }) => JSON.stringify(tools))).size, 1, "its tools stay the same");
    assert.equal(run.seen.length, 6, "no call is made twice");
  });

test("the harnesses that take servers of tools are these", () => {
  assert.deepEqual(
    harnesses.flatMap(({ name, tools }) => (tools ? [name] : [])),
    ["codex", "claude-code", "gemini-cli", "qwen-code", "opencode"],
  );
});

async function launched(t: TestContext, harness: Harness) {
  const pack = await installedPack(t, harness);
  if (pack === null) return null;
  const seen: Seen = [];
  const late = sdkService(() => shopServer(seen));
  const place = placeOf(
    { shop: sdkService(() => shopServer(seen)), "late-shop": late },
    { pipe: (stream: Duplex) => void shopServer(seen).connect(new StdioServerTransport(stream as never, stream as never)) },
  );
  const requests: WireRequest[] = [];
  await using tools = await toolsAt({
    servers: [
      { name: "shop", service: "shop", port: 8000 },
      { name: "late-shop", service: "late-shop", port: 8000 },
      { name: "pipe", service: "pipe", command: ["serve"] },
    ],
    place: {
      ...place,
      async connect(service, port, signal) {
        if (service === "late-shop") await sleep(6_000, undefined, { signal });
        return place.connect(service, port, signal);
      },
    },
    script: (request) => {
      // The proxy's own questions to the engine have no instruction of ours.
      if (!JSON.stringify(request.messages).includes("Look at the orders.")) return { text: "yes" };
      requests.push(request);
      return replyTo(request, requests.length - 1);
    },
  });
  await using home = await temporaryPlace({ "README.md": "" });
  execFileSync("git", ["init", "-q", "."], { cwd: home.workdir });
  const launch = harness.launch({
    ...{ instruction: "Look at the orders.", baseUrl: tools.url, apiKey: "sk-local", model: "any", home: home.home, workdir: home.workdir },
    ...{
      pack: pack.folder,
      contextWindow: 8_000_000,
      tools: tools.relay.servers.map((name) => ({ name, url: `${tools.url}/mcp/${name}` })),
    },
  });
  await writeBelow(home.home, launch.files);
  const env = { PATH: "/usr/sbin:/usr/bin:/bin", ...launch.env };
  const ended = await runCommand(launch.argv, { cwd: home.workdir, env, signal: t.signal });
  return { ended, requests, seen, trajectory: await tools.client.trajectory() };
}

function replyTo(request: WireRequest, index: number): ScriptedReply {
  const step = steps[index];
  if (step === undefined) return { text: "All orders were looked at." };
  const [server, tool, args] = step;
  const name = toolNameIn(request, server, tool) ?? toolNameIn(request, server, "find_order")?.replace("find_order", tool) ?? tool;
  return { tool_calls: [{ id: `c${index}`, name, arguments: JSON.stringify(args) }] };
}
