/** Services in a network namespace of their own: the contract by each door, and what a hostile agent tries. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { currentOwner } from "../../base/host/owner.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import { serviceChecks } from "../../sandboxes/contract/services.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker, dockerBackend } from "../../sandboxes/docker.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { need } from "../needs.ts";

for (const door of ["namespace", "forwarder"] as const)
  for (const { says, check } of serviceChecks)
    test(`${door}: ${says}`, { timeout: 300_000 }, async (t) => {
      if (!(await need(t, "docker"))) return;
      if (door === "namespace" && !(await need(t, "engine-here"))) return;
      await check(dockerBackend({ door }), { run_id: "apart", owner: await currentOwner(), signal: t.signal });
    });

const run = promisify(execFile);
const small = { image: baseImage, network: "apart", memory_mb: 64, disk_mb: 16, command: ["sleep", "600"] };

async function listed(run_id: string): Promise<string[]> {
  const { stdout } = await run("docker", ["ps", "-a", "--filter", `label=alidade.run=${run_id}`, "--format", "{{.Names}} {{.Status}}"]);
  return stdout.split("\n").filter((line) => line !== "");
}

test("services apart stand still in a pause, a dead one is seen before a hand-out, and the reaper finds all that is left", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal: t.signal });
  const run_id = `apart${process.pid}`;
  const environment = Environment.parse({ services: { one: small, other: { ...small, command: ["true"], healthcheck: "completed" } } });
  const limits = Limits.parse({ memory_mb: 128, disk_mb: 32 });
  const spec = specOf({ environment, limits }, { run_id, owner: await currentOwner() });
  assert.equal(docker.takes(limits, environment.services).memory_mb, 128 + 64 + 64 + 128);
  await using sandbox = await docker.create(spec, t.signal);
  assert.equal(await sandbox.isAsNew?.(), true);
  const paused = async () => (await listed(run_id)).filter((line) => line.includes("Paused")).length;
  await sandbox.pause?.("agent");
  assert.equal(await paused(), 1, "the sandbox alone");
  await sandbox.pause?.();
  assert.equal(await paused(), 2, "the sandbox and the service that lives");
  await sandbox.resume?.();
  const names = await listed(run_id);
  assert.equal(names.length, 4, names.join("\n"));
  await run("docker", ["kill", names.map((line) => line.split(" ")[0]).find((name) => name?.endsWith("-one")) ?? ""]);
  assert.equal(await sandbox.isAsNew?.(), false);
  const { removed } = await docker.reap({ all: true, only_look: true }, t.signal);
  assert.equal(removed.filter((line) => line.includes(run_id)).length, 4, removed.join("\n"));
  await sandbox[Symbol.asyncDispose]();
  assert.deepEqual(await listed(run_id), []);
});

test("the container of a namespace counts where it is made: not for a lone service, if this machine enters containers", async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "engine-here"))) return;
  const [lone, two] = [{ one: small }, { one: small, two: small }].map((services) => Environment.parse({ services }).services);
  const limits = Limits.parse({ memory_mb: 128, disk_mb: 32 });
  const taken = async (door: "auto" | "forwarder", asks: boolean) => {
    const backend = dockerBackend({ door });
    if (asks) await backend.room(t.signal);
    return [lone, two].map((services) => backend.takes(limits, services).memory_mb);
  };
  assert.deepEqual(await taken("auto", true), [128 + 64, 128 + 64 + 64 + 128]);
  assert.deepEqual(await taken("forwarder", true), [128 + 64 + 128, 128 + 64 + 64 + 128]);
  assert.deepEqual(await taken("auto", false), [128 + 64 + 128, 128 + 64 + 64 + 128], "what is not known counts");
});

test("a lone service apart gets its folders, and needs no container for its namespace", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "engine-here"))) return;
  await ensureBaseImage({ signal: t.signal });
  const run_id = `lone${process.pid}`;
  const command = ["sh", "-c", "echo here > /srv/deep/er/file; exec sleep 600"];
  const check = { command: ["test", "-e", "/srv/deep/er/file"], interval_seconds: 0.2, retries: 900 };
  const one = { ...small, user: "1234", command, healthcheck: check, folders: ["/srv/deep/er", "/etc"], state: ["/srv/deep"] };
  const environment = Environment.parse({ services: { one } });
  const spec = specOf({ environment, limits: Limits.parse({ memory_mb: 128, disk_mb: 32 }) }, { run_id, owner: await currentOwner() });
  await using sandbox = await docker.create(spec, t.signal);
  const containers = (await listed(run_id)).map((line) => line.split(" ")[0]);
  assert.equal(containers.length, 2, "the sandbox and the service");
  const files = (await sandbox.readState?.("one", { end: true, signal: t.signal })) ?? [];
  assert.deepEqual(
    files.map(({ path, content }) => [path, content.toString()]),
    [["srv/deep/er/file", "here\n"]],
  );
});
