/** The real CLIs from their packs inside real sandboxes, through the door, led by the demo's plays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Limits } from "../../base/schema/task.ts";
import { type PlayedHarness, playsFor } from "../../examples/demo/plays.ts";
import { harnesses } from "../../harnesses/registry.ts";
import { openNetwork, plainRules } from "../../sandboxes/network/open-network.ts";
import { nodeInside, nodeMount } from "../../sandboxes/node-mount.ts";
import { backends } from "../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { hermesTurn } from "../fakes/engines/hermes-turn.ts";
import { scriptedHarnessApi } from "../fakes/proxies/scripted-harness-api.ts";
import { addFiles, addScript } from "../fakes/rollouts/add-script.ts";
import { need } from "../needs.ts";
import { installedPack } from "./installed-pack.ts";

for (const backend of backends) {
  for (const harness of harnesses) {
    test(`${harness.name} repairs the code in a ${backend.name} sandbox`, { timeout: 300_000 }, async (t) => {
      if (backend.name === "docker" && !(await need(t, "docker"))) return;
      const pack = await installedPack(t, harness);
      if (pack === null) return;
      const script = playsFor(harness.name as PlayedHarness, addScript, "right").map((sampling) => {
        const { text, calls } = hermesTurn((sampling.structured_outputs as { choice: string[] }).choice[0] ?? "");
        return text === "" ? { tools: calls } : { text };
      });
      await using api = await scriptedHarnessApi(script);
      await using sandbox = await create(
        backend,
        { [`/opt/alidade/${harness.name}`]: pack.folder, [nodeInside]: await nodeMount() },
        t.signal,
      );
      await using door = await sandbox.openDoor((socket) => api.accept(socket));
      await sandbox.writeFiles(asFiles(addFiles));
      const launch = harness.launch({
        instruction: "Repair add.",
        baseUrl: door.url,
        apiKey: "sk-local",
        model: "practice",
        home: sandbox.path("/home/agent"),
        workdir: sandbox.path("/work"),
        pack: sandbox.path(`/opt/alidade/${harness.name}`),
        contextWindow: null,
      });
      await sandbox.writeFiles(asFiles(launch.files), "/home/agent");
      // As where a task allows hosts: model calls go by the door all the same.
      const rules = plainRules();
      await using network = await openNetwork(sandbox, "agent", { allow: ["packages.example.org"] }, rules);
      const env = { ...network.env, ...launch.env };
      const ended = await sandbox.exec(launch.argv, { env, timeout_ms: 120_000, signal: t.signal });
      assert.equal(ended.exit_code, 0, `${ended.stdout}\n${ended.stderr}`);
      assert.deepEqual(harness.end(ended), { failed: false, message: null });
      assert.equal(api.requests.length, script.length);
      assert.match(JSON.stringify(api.requests.at(-1)?.body), /pass 1/);
      assert.deepEqual(rules.log.use(), { destinations: [], refusals: [], left_out: 0 });
      const [add] = await sandbox.readFiles("/work", { exclude: ["add.test.js", "package.json"] });
      assert.match(String(add?.content), /return a \+ b;/);
    });
  }
}

function create(backend: SandboxBackend, mounts: Record<string, string>, signal: AbortSignal) {
  const spec = {
    run_id: "test-harnesses",
    owner: `test-${process.pid}`,
    image: null,
    workdir: "/work",
    mounts,
    env: {},
    limits: Limits.parse({}),
  };
  return backend.create(spec, signal);
}

function asFiles(files: Record<string, string>) {
  return Object.entries(files).map(([path, content]) => ({ path, content: Buffer.from(content), mode: 0o644 }));
}
