/**
 * A backend of a user's own, in a file outside of this repository. Nothing asks its name or the word of its isolation, so it can do
 * all that its capabilities say.
 */
import assert from "node:assert/strict";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf, root } from "../fakes/processes/cli.ts";
import { chatHarness, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("own-backend");

/** A backend with its own name and its own word, around one that is there: `nth` of the list. */
async function backendFile(name: string, nth: number, capabilities: object = {}): Promise<string> {
  const file = join(scratch, `${name}.ts`);
  const index = pathToFileURL(join(root, "index.ts")).href;
  await writeFile(
    file,
    `import { backends, type SandboxBackend } from ${JSON.stringify(index)};
const base: SandboxBackend = backends[${nth}];
export default {
  ...base,
  name: ${JSON.stringify(name)},
  title: "vaults",
  capabilities: { ...base.capabilities, isolation: "vault", ...${JSON.stringify(capabilities)} },
  async create(spec, signal) {
    const sandbox = await base.create(spec, signal);
    return Object.assign(sandbox, { facts: { ...sandbox.facts, backend: ${JSON.stringify(name)}, isolation: "vault" } });
  },
} satisfies SandboxBackend;
`,
  );
  return file;
}

let runs = 0;
/** Where containers have Node and the harness. */
const inside = ["/opt/alidade/node/bin/node", "/work/chat-harness.ts"];

/** No `unsafe_host`: a run without isolation would be refused. */
async function runIn(
  t: TestContext,
  sandbox: string,
  { task = "", command = ["node", chatHarness], flags = [] as string[] } = {},
): Promise<RolloutRecord> {
  const engine = await ScriptedEngine.start(solve);
  t.after(() => engine[Symbol.asyncDispose]());
  const folder = join(scratch, `run${runs++}`);
  const place = await writeTask(folder, "small", task);
  await copyFile(chatHarness, join(place, "files", "chat-harness.ts"));
  const file = join(folder, "run.yaml");
  const config = {
    engine: { url: engine.url },
    harness: { command: [...command, "{instruction}"] },
    tasks: [place],
    samples: 1,
    retries: 0,
    out: join(folder, "runs"),
  };
  await writeFile(file, JSON.stringify(config));
  const result = await cli(["run", "-c", file, "--sandbox", sandbox, "--json", ...flags]);
  assert.equal(result.code, 0, result.stdout + result.stderr);
  const { rollouts } = jsonOf<{ rollouts: RolloutRecord[] }>(result);
  return rollouts[0] ?? assert.fail(result.stderr);
}

test("a task runs from its start to a graded end in a backend of one's own, whose verdicts count as apart", async (t) => {
  const own = await backendFile("vault", 1);
  const { state, verdict, sandbox } = await runIn(t, own, { flags: ["--min-tier", "T1"] });
  assert.deepEqual([state, verdict?.reward, verdict?.status, verdict?.tier, verdict?.isolation], ["done", 1, "graded", "T1", "vault"]);
  assert.deepEqual([sandbox?.backend, sandbox?.isolation], ["vault", "vault"]);
  const shared = await runIn(t, own, { flags: ["--grading", "shared"] });
  assert.deepEqual([shared.verdict?.reward, shared.verdict?.tier, shared.verdict?.isolation], [1, "T0", "shared"]);
});

test("a backend that says no word for its isolation, or one of ours, is refused and never taken for one that isolates", async () => {
  for (const [name, isolation] of [
    ["mute", null],
    ["taken", "shared"],
    ["loud", "Very Safe"],
  ] as const)
    await assert.rejects(pickBackend(await backendFile(name, 1, { isolation }), AbortSignal.timeout(10_000)), {
      code: "plugin_invalid",
      param: "sandbox",
      message: new RegExp(`^the sandbox backend ${name} has capabilities.isolation ${JSON.stringify(isolation)}: give one word`),
    });
});

test("what a backend of one's own does not say that it can is refused before the run, by field", async () => {
  const own = await backendFile("plain", 1, { images: true });
  await using engine = await ScriptedEngine.start(solve);
  for (const [field, asked] of [
    ["environment.build", "environment: { build: { context: files } }"],
    ["keep_processes", "keep_processes: true"],
  ] as const) {
    const place = await writeTask(join(scratch, field), "small");
    const text = `task_id: small\ninstruction: "Do it."\n${asked}\nlimits: { agent_seconds: 30 }\ngrader: { kind: script, command: ["true"] }\n`;
    await writeFile(join(place, "task.yaml"), text);
    const run = ["run", place, "--sandbox", own, "--engine", engine.url, "--harness", "pi", "-o", join(scratch, "none")];
    const { code, stdout, stderr } = await cli(run);
    assert.notEqual(code, 0);
    assert.ok((stdout + stderr).includes(`${field} is `), stdout + stderr);
  }
});

test("all that Docker does a backend of one's own does: the contract, a run by images, living processes, images, admission", {
  timeout: 900_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const own = await backendFile("vault-of-docker", 0);
  const { checks } = jsonOf<{ checks: { says: string; failure: string | null }[] }>(await cli(["plugin", "check", own, "--json"]));
  assert.ok(checks.length > 20);
  assert.deepEqual(
    checks.filter(({ failure }) => failure !== null),
    [],
  );
  const { verdict, sandbox } = await runIn(t, own, { command: inside, flags: ["--min-tier", "T1"] });
  assert.deepEqual([verdict?.reward, verdict?.tier, verdict?.isolation], [1, "T1", "vault"]);
  assert.match(String(sandbox?.image_digest), /^sha256:/);
  const kept = await runIn(t, own, { command: inside, task: "keep_processes: true\n" });
  assert.deepEqual([kept.verdict?.reward, kept.verdict?.isolation, kept.verdict?.evidence.kept_processes], [1, "shared", true]);
  const listed = jsonOf<{ images: { kind: string }[] }>(await cli(["images", "list", "--sandbox", own, "--json"]));
  assert.ok(listed.images.some(({ kind }) => kind === "base"));
  const task = await writeTask(
    join(scratch, "to-admit"),
    "small",
    `gold_patch: ${JSON.stringify("diff --git a/done.txt b/done.txt\nnew file mode 100644\n--- /dev/null\n+++ b/done.txt\n@@ -0,0 +1 @@\n+yes\n")}\n`,
    { disk_mb: 1024, memory_mb: 512 },
  );
  const admission = await cli(["check", task, "--sandbox", own, "--times", "1", "--json"]);
  const [found] = jsonOf<{ checks: { outcome: string; record: { backend: string; leak_scan: object | null } | null }[] }>(admission).checks;
  assert.deepEqual(
    [found?.record?.backend, found?.record?.leak_scan !== null],
    ["vault-of-docker", true],
    admission.stdout + admission.stderr,
  );
});
