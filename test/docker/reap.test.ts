/** What a killed process leaves behind is found and removed by the next process. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { currentOwner } from "../../base/host/owner.ts";
import { Limits } from "../../base/schema/task.ts";
import { baseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { backends } from "../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const run = promisify(execFile);

/** Makes a sandbox with a process in it, where it can be a service beside it, and a warm one, prints where it is, and waits to be killed. */
const maker = (backend: string, runId: string, word: string) => `
import { backends } from ${JSON.stringify(new URL("../../sandboxes/registry.ts", import.meta.url).href)};
import { currentOwner } from ${JSON.stringify(new URL("../../base/host/owner.ts", import.meta.url).href)};
import { Environment, Limits } from ${JSON.stringify(new URL("../../base/schema/task.ts", import.meta.url).href)};
import { WarmPool } from ${JSON.stringify(new URL("../../sandboxes/warm-pool.ts", import.meta.url).href)};
const backend = backends.find((one) => one.name === ${JSON.stringify(backend)});
const spec = { run_id: ${JSON.stringify(runId)}, owner: await currentOwner(), image: null, workdir: "/work", mounts: {}, env: {}, limits: Limits.parse({}) };
const warm = new WarmPool(backend, { sandboxes: 1, seconds: 600 });
const db = { image: ${JSON.stringify(baseImage)}, command: ["sleep", "600"], memory_mb: 64, disk_mb: 16 };
const beside = backend.capabilities.services ? { services: Environment.parse({ services: { db } }).services } : {};
const sandbox = await warm.create({ ...spec, ...beside }, AbortSignal.timeout(60_000));
warm.expect(spec);
while (warm.counters.ready === 0) await new Promise((resolve) => setTimeout(resolve, 10));
void sandbox.exec(["sleep", ${JSON.stringify(word)}]);
await sandbox.exec(["sh", "-c", "until ps -A -o args | grep -q '[s]leep ${word}'; do sleep 0.05; done"]);
console.log(sandbox.path("/work") + " " + sandbox.id);
setInterval(() => {}, 1000);`;

async function leaveBehind(backend: SandboxBackend, runId: string, word: string): Promise<{ workdir: string; id: string }> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", maker(backend.name, runId, word)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  child.kill("SIGKILL");
  await once(child, "exit");
  const [workdir = "", id = ""] = line.toString().trim().split(" ");
  return { workdir, id };
}

async function ready(t: TestContext, backend: SandboxBackend): Promise<boolean> {
  if (backend.name === "docker") return need(t, "docker");
  const reason = await backend.unavailable(signal);
  if (reason !== null) t.skip(reason);
  return reason === null;
}

for (const backend of backends) {
  test(`${backend.name}: reap removes what a killed process left, and leaves a living one's alone`, { timeout: 300_000 }, async (t) => {
    if (!(await ready(t, backend))) return;
    const word = String(50_000_000 + process.pid);
    const mine = {
      run_id: `living${process.pid}`,
      owner: await currentOwner(),
      image: null,
      workdir: "/work",
      mounts: {},
      env: {},
      limits: Limits.parse({}),
    };
    await using living = await backend.create(mine, signal);
    const runId = `dead${process.pid}`;
    const { workdir, id } = await leaveBehind(backend, runId, word);

    const { removed } = await backend.reap({}, signal);
    const about = removed.filter((line) => line.includes(runId) && !/^\d+ volumes /.test(line));
    assert.equal(about.length, backend.capabilities.services ? 3 : 2, removed.join("\n"));
    for (const line of about) assert.match(line, /its owner, process \d+, is gone/);
    assert.doesNotMatch(removed.join("\n"), /living/);

    if (backend.capabilities.isolation === "container") {
      await assert.rejects(run("docker", ["inspect", id]));
      assert.equal((await run("docker", ["volume", "ls", "-q", "--filter", `label=alidade.run=${runId}`])).stdout, "");
    }
    if (backend.capabilities.isolation === "none") await assert.rejects(stat(workdir));
    assert.doesNotMatch((await run("ps", ["-A", "-o", "stat=,args="])).stdout, new RegExp(`^[^Z].*sleep ${word}`, "m"));
    assert.deepEqual(
      (await backend.reap({}, signal)).removed.filter((line) => line.includes(runId)),
      [],
    );
    assert.equal((await living.exec(["true"])).exit_code, 0);
  });

  test(`${backend.name}: reap removes what is past its lease, whichever its owner`, { timeout: 300_000 }, async (t) => {
    if (!(await ready(t, backend))) return;
    const runId = `late${process.pid}`;
    // A day and more of slack belongs to every lease; minus two days is over.
    const limits = { ...Limits.parse({}), init_seconds: -2 * 86_400 };
    await using _sandbox = await backend.create(
      { run_id: runId, owner: await currentOwner(), image: null, workdir: "/work", mounts: {}, env: {}, limits },
      signal,
    );
    const { removed } = await backend.reap({}, signal);
    assert.match(removed.join("\n"), new RegExp(`${runId} \\(its lease is over\\)`));
  });
}
