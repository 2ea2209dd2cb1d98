/** `alidade run --control-port`: a trainer brings new weights to a run while it goes on. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { tellControl } from "../../../cli/commands/proxy/tell-control.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { startCli } from "../../fakes/processes/cli.ts";
import { runFile, solve, writeTask } from "../../fakes/rollouts/small-task.ts";

const folder = scratchFolder("run-control");

test("the address that a killed run left is gone as soon as the run goes on, also where none is asked for", async () => {
  const place = join(folder, "control.json");
  await writeFile(place, '{"url":"http://127.0.0.1:1","token":"old"}\n');
  await using _told = await tellControl(folder, null, null, () => undefined);
  assert.equal(existsSync(place), false);
});

test("a trainer pauses a run, names weights and resumes it: what is sampled later has the new name, and the address is gone at the end", async () => {
  const hold = Promise.withResolvers<void>();
  await using engine = await ScriptedEngine.start((request) => ({ ...solve(request), before: hold.promise }));
  await writeTask(folder, "small");
  const [file, out] = [join(folder, "run.yaml"), join(folder, "runs")];
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small"] }));
  await using running = startCli(["run", "-c", file, "-o", out, "-n", "1", "--control-port", "0", "--json"]);
  await running.until(() => engine.requests.length === 1);
  const run = join(out, (await readdir(out))[0] ?? "");
  const place = join(run, "control.json");
  assert.equal((await stat(place)).mode & 0o777, 0o600);
  const { url, token } = JSON.parse(await readFile(place, "utf8")) as { url: string; token: string };
  const ask = (method: string, path: string, body?: object, word = token) =>
    fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${word}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
  assert.equal((await ask("POST", "/pause", { mode: "drain" }, "guessed")).status, 401);

  const pause = ask("POST", "/pause", { mode: "drain", timeout_seconds: 60 });
  await running.until(async () => (await (await ask("GET", "/health")).text()).includes("paused"));
  hold.resolve();
  const { fence, drained } = (await (await pause).json()) as { fence: string; drained: boolean };
  assert.equal(drained, true);
  assert.equal((await ask("PUT", "/policy", { fence, version: "second", step: 1 })).status, 200);
  assert.equal((await ask("POST", "/resume", { fence })).status, 200);

  const { code, stderr } = await running.ended;
  assert.equal(code, 0, stderr);
  const trajectory = Trajectory.parse(JSON.parse(await readFile(join(run, "trajectories.jsonl"), "utf8")));
  const sampled = trajectory.nodes.filter(({ kind }) => kind === "sampled").map(({ policy_version }) => policy_version);
  assert.deepEqual(sampled, [null, "second"]);
  assert.equal(existsSync(place), false);
});
