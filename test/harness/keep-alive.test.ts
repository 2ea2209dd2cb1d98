/** The frames that hold a slow turn's connection open, read by the real CLI whose parser comments would break, and what it sends back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { geminiCli } from "../../harnesses/gemini-cli.ts";
import { proxyAt } from "../fakes/proxies/proxy-at.ts";
import { installedPack } from "./installed-pack.ts";
import { runCommand, temporaryPlace, writeBelow } from "./run-harness.ts";

test("Gemini CLI waits through keep-alives, and its turn comes back as it was sampled, with the thought whose signature alone it sends", {
  timeout: 300_000,
}, async (t) => {
  const pack = await installedPack(t, geminiCli);
  if (pack === null) return;
  await using at = await proxyAt(
    (_request, index) =>
      index === 0
        ? {
            reasoning: "I should look.",
            text: "Look.",
            tool_calls: [{ name: "run_shell_command", arguments: '{ "command" :  "echo h\\u00e9llo" }' }],
            before: sleep(3_000),
          }
        : { text: "All seen." },
    { keepAliveMs: 200 },
  );
  const client = await at.open();
  await using place = await temporaryPlace({ "a.txt": "x" });
  const { home, workdir } = place;
  const launch = geminiCli.launch({
    ...{ instruction: "Look.", baseUrl: at.proxy.url, apiKey: client.key, model: "any" },
    ...{ home, workdir, pack: pack.folder, contextWindow: null },
  });
  await writeBelow(home, launch.files);
  const ended = await runCommand(launch.argv, { cwd: workdir, env: { PATH: "/usr/bin:/bin", ...launch.env }, signal: t.signal });
  assert.deepEqual(geminiCli.end(ended), { failed: false, message: null }, ended.stderr);
  assert.match(ended.stdout, /All seen\./);
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => [call.match, call.outcome, call.request_class]),
    [
      ["root", "delivered", "main"],
      ["exact", "delivered", "main"],
    ],
  );
  assert.deepEqual(
    calls[1]?.restored.map(({ evidence, status, differences }) => [evidence, status, differences]),
    [["tool_call_id", "restored", ["reasoning_carried", "arguments"]]],
  );
  assert.deepEqual(at.unseen, []);
});
