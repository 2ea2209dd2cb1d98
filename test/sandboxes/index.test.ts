import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import type { AlidadeError } from "../../base/errors.ts";
import { backendNames, backends, pickBackend } from "../../sandboxes/registry.ts";

const run = promisify(execFile);
const signal = AbortSignal.timeout(300_000);

/** What a process sees that has been told to use an engine that is not there. */
async function withoutEngine(name: string): Promise<{ backend?: string; reason?: string; code?: string; message?: string }> {
  const index = new URL("../../sandboxes/registry.ts", import.meta.url).href;
  const script = `const { pickBackend } = await import(${JSON.stringify(index)});
    console.log(JSON.stringify(await pickBackend(${JSON.stringify(name)}, AbortSignal.timeout(20_000))
      .then(({ backend, reason }) => ({ backend: backend.name, reason }), (error) => ({ code: error.code, message: error.message }))));`;
  const env = { ...process.env, DOCKER_HOST: "tcp://127.0.0.1:9" };
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { env });
  return JSON.parse(stdout);
}

test("auto falls back to processes where no engine answers, and says why", async () => {
  const picked = await withoutEngine("auto");
  assert.equal(picked.backend, "process");
  assert.match(picked.reason ?? "", /isolated from nothing.*No Docker engine answers.*DOCKER_HOST/);
});

test("a backend that was asked for by name is never replaced by another", async () => {
  const picked = await withoutEngine("docker");
  assert.equal(picked.code, "sandbox_unavailable");
  assert.match(picked.message ?? "", /Start Docker/);
});

test("an unknown name is refused with the names there are", async () => {
  await assert.rejects(pickBackend("dokcer", signal), (error: AlidadeError) => {
    assert.equal(error.code, "plugin_unknown");
    for (const name of backendNames.slice(1)) assert.match(error.message, new RegExp(name));
    return true;
  });
});

test("the names that can be asked for are the registry's", async () => {
  assert.deepEqual(["auto", ...backends.map(({ name }) => name)], backendNames);
});
