/** What the real programs offer their model, with our settings and without: what the page says of that is so. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { claudeCode, claudeToolsLeftOut } from "../../harnesses/claude-code.ts";
import { codex } from "../../harnesses/codex.ts";
import type { Harness, HarnessLaunch } from "../../harnesses/harness.ts";
import { installedPack } from "./installed-pack.ts";
import { runCommand, temporaryPlace, writeBelow } from "./run-harness.ts";

test("Claude Code offers four tools under our settings, and without them the others that the page names", {
  timeout: 300_000,
}, async (t) => {
  const ours = await offeredTools(t, claudeCode, (launch) => launch);
  if (ours === null) return;
  assert.deepEqual(ours, ["Bash", "Edit", "Read", "Write"]);
  const all = await offeredTools(t, claudeCode, ({ argv, env, files }) => {
    const { CLAUDE_CODE_DISABLE_WORKFLOWS: _, ...rest } = env;
    return { argv: argv.toSpliced(argv.indexOf("--tools"), 2), env: rest, files };
  });
  assert.deepEqual(all, [...ours, ...claudeToolsLeftOut].toSorted());
});

test("Codex offers no agents, goals or web search under our settings, and does without them", { timeout: 300_000 }, async (t) => {
  const ours = await offeredTools(t, codex, (launch) => launch);
  if (ours === null) return;
  const all = await offeredTools(t, codex, (launch, recorded) => ({ ...launch, files: recorded.files }));
  assert.deepEqual(
    all?.filter((tool) => !ours.includes(tool)),
    ["create_goal", "get_goal", "multi_agent_v1", "update_goal", "web_search"],
  );
});

type Configured = Omit<HarnessLaunch, "argv">;

/** The names of the tools in the harness's first request, sorted; null where it is not installed. */
async function offeredTools(
  t: TestContext,
  harness: Harness,
  change: (launch: HarnessLaunch, recorded: Configured) => HarnessLaunch,
): Promise<string[] | null> {
  const pack = await installedPack(t, harness);
  if (pack === null) return null;
  await using place = await temporaryPlace({});
  await using engine = await refusingEngine();
  const context = {
    ...{ instruction: "Look.", baseUrl: engine.url, apiKey: "sk-local-0123456789abcdefghij", model: "scripted" },
    ...{ home: place.home, workdir: place.workdir, pack: pack.folder, contextWindow: 200_000 },
  };
  await writeBelow(place.workdir, { "README.md": "" });
  const { argv, env, files } = change(harness.launch(context), harness.configure(context));
  await writeBelow(place.home, files);
  await runCommand(argv, { cwd: place.workdir, env: { PATH: "/usr/bin:/bin", ...env }, signal: t.signal });
  const [first] = engine.bodies;
  assert.ok(first !== undefined, "it made no call");
  return first.tools.map(({ name, type }) => name ?? type).toSorted();
}

/** Its answer ends every harness at once. */
async function refusingEngine() {
  const bodies: { tools: { name?: string; type: string }[] }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    if (text.includes('"tools"')) bodies.push(JSON.parse(text));
    response.writeHead(400, { "content-type": "application/json" });
    response.end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: "no" } }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
