/** deploy/compose.yaml in a real Docker engine: service, node and Postgres in containers, and sandboxes beside them. */
import assert from "node:assert/strict";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { bridgeAddress } from "../fakes/machine/bridge-address.ts";
import { Compose } from "../fakes/machine/compose.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { until } from "../fakes/machine/until.ts";
import { drainedResults, submit } from "../fakes/processes/cluster-at.ts";
import { chatHarness, runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";
import { quietPort } from "../quiet-port.ts";

const scratch = scratchFolder("compose");

test("a node in a container makes rollouts in sandboxes beside it, and ends what it has begun when it is stopped", {
  timeout: 600_000,
}, async (t) => {
  if (!((await need(t, "engine-here")) && (await need(t, "compose")) && (await need(t, "postgres")))) return;
  await ensureBaseImage({ signal: AbortSignal.timeout(240_000) });
  const gateway = await bridgeAddress();
  assert.ok(gateway, "containers are on a bridge of this machine");
  const gate = Promise.withResolvers<void>();
  const held = (request: Parameters<typeof solve>[0]) => ({ ...solve(request), ...(request.tools && { before: gate.promise }) });
  await using engine = await ScriptedEngine.start(held, gateway);
  const place = await writeTask(scratch, "fix-slug");
  await copyFile(chatHarness, join(place, "files", "chat-harness.ts"));
  const command = ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}"];
  const url = engine.url.replace(gateway, "host.docker.internal");
  const file = runFile({ engine: url, tasks: ["fix-slug"], command, more: "concurrency: { run: 1 }\n" });
  await writeFile(join(scratch, "run.yaml"), file.replace("sandbox: process\nunsafe_host: true", "sandbox: docker"));

  const token = "a-token-of-the-test";
  const port = String(await quietPort());
  const env = { ALIDADE_FOLDER: scratch, ALIDADE_SERVICE_TOKEN: token, ALIDADE_PORT: port, PGPASSWORD: "a-password" };
  await using compose = await Compose.up(join(scratch, "compose"), env);
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };
  const nodes = async () =>
    JSON.parse((await ask("GET", "/nodes").catch(() => null))?.text ?? "{}").nodes as { name: string }[] | undefined;
  const waitFor = (isTrue: () => boolean | Promise<boolean>) =>
    until(isTrue, { ms: 240_000, said: () => compose.run("logs", "--tail=200") });
  await waitFor(async () => (await nodes())?.[0]?.name === "node");
  const set = await submit({ ask }, 6);
  await waitFor(() => engine.requests.some(({ tools }) => tools));
  const stopped = compose.run("stop", "node");
  await waitFor(async () => (await compose.run("logs", "node")).includes("alidade: stopping"));
  gate.resolve();
  await stopped;
  assert.deepEqual(JSON.parse((await ask("GET", "/nodes")).text).nodes, []);
  const lines = await drainedResults({ ask }, set, 12);
  assert.ok(lines.every(({ result }) => result.attempt === 1));
});
