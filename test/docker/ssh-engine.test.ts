/** An engine that is reached through a real sshd, by the user's own `ssh`. */
import assert from "node:assert/strict";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { AlidadeError, errorCodes } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { Limits } from "../../base/schema/task.ts";
import { connectEngine } from "../../sandboxes/docker/hosts/engine-connection.ts";
import { dockerBackend } from "../../sandboxes/docker.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { SshServer } from "../fakes/machine/ssh-server.ts";
import { until } from "../fakes/machine/until.ts";
import { cliProcess, jsonOf } from "../fakes/processes/cli.ts";
import { chatHarness, runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("ssh");
const signal = AbortSignal.timeout(900_000);
const ownPath = process.env.PATH;

async function hasSshd(t: TestContext): Promise<boolean> {
  return (await need(t, "sshd")) && (await need(t, "engine-here"));
}

test("a rollout runs and is graded at an engine that is reached by SSH", { timeout: 300_000 }, async (t) => {
  if (!(await hasSshd(t))) return;
  await using server = await SshServer.start();
  await using engine = await ScriptedEngine.start(solve);
  const place = await writeTask(scratch, "far");
  await copyFile(chatHarness, join(place, "files", "chat-harness.ts"));
  const file = join(scratch, "run.yaml");
  const command = ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}"];
  const text = runFile({ engine: engine.url, tasks: ["far"], command });
  await writeFile(file, text.replace("sandbox: process\nunsafe_host: true", "sandbox: docker"));
  const args = ["run", "-c", file, "-n", "1", "--docker-engine", server.host, "-o", join(scratch, "runs"), "--json"];
  const result = await cliProcess(args, { env: { PATH: server.path() } });
  assert.equal(result.code, 0, result.stderr);
  const { rollouts } = jsonOf<{ rollouts: RolloutRecord[] }>(result);
  assert.deepEqual(
    rollouts.map(({ verdict, sandbox }) => [verdict?.reward, sandbox?.engine]),
    [[1, server.host]],
  );
});

test("as many requests at once as there are get their answer, though a server takes few that log in at once", {
  timeout: 300_000,
}, async (t) => {
  if (!(await hasSshd(t))) return;
  await using server = await SshServer.start();
  t.after(() => {
    process.env.PATH = ownPath;
  });
  process.env.PATH = server.path();
  const docker = connectEngine({ host: server.host });
  const answers = await Promise.all(Array.from({ length: 24 }, () => docker.ping() as Promise<Buffer>));
  assert.deepEqual(new Set(answers.map(String)), new Set(["OK"]));
});

test("a key that is refused, a server that is gone and a connection that dies are one sentence each", { timeout: 300_000 }, async (t) => {
  if (!(await hasSshd(t))) return;
  await using server = await SshServer.start();
  t.after(() => {
    process.env.PATH = ownPath;
  });
  const whyNot = (key: "mine" | "other", host = server.host) => {
    process.env.PATH = server.path(key);
    return dockerBackend({ engines: [{ host }] }).unavailable(signal);
  };
  const works = /; "ssh [^"]+" must work without a question\.$/;
  const refused = String(await whyNot("other"));
  assert.match(refused, /ssh ended with 255 \([^()]+: Permission denied \(publickey\)\)/);
  const gone = String(await whyNot("mine", server.host.replace(/\d+$/, "9")));
  assert.match(gone, /ssh ended with 255 \(ssh: connect to host 127\.0\.0\.1 port 9: Connection refused\)/);
  for (const sentence of [refused, gone]) assert.match(sentence, works);

  assert.equal(await whyNot("mine"), null);
  const backend = dockerBackend({ engines: [{ host: server.host }] });
  const limits = Limits.parse({ memory_mb: 128, disk_mb: 64 });
  const spec = { run_id: "ssh", owner: await currentOwner(), image: null, workdir: "/work", mounts: {}, env: {}, limits };
  await using sandbox = await backend.create(spec, signal);
  const died = assert.rejects(sandbox.exec(["sh", "-c", "touch begun; exec sleep 600"]), (error) => {
    assert.ok(error instanceof AlidadeError, String(error));
    assert.equal(errorCodes[error.code], "infrastructure", error.message);
    // The second where the question what became of it went over a connection that was cut too.
    const lost = /^The container engine lost the command "[^"]+": it may have restarted, or the connection to it ended\.$/;
    const unreached = /^The container engine was not reached when "[^"]+" ran in it: ssh ended with 255 /;
    assert.ok(lost.test(error.message) || unreached.test(error.message), error.message);
    return true;
  });
  await until(async () => (await sandbox.exec(["ls"])).stdout === "begun\n");
  server.cut();
  await died;
  assert.equal((await sandbox.exec(["echo", "again"])).stdout, "again\n", "the next request makes a new connection");
});
