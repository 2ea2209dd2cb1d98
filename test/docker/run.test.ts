/** A run whose containers are killed. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { readRollouts, readTrajectories } from "../../rollouts/index.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { chatHarness, runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("killed");

test("a container that is killed in the middle of its rollout costs one attempt, typed, and its sibling goes on", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  // Both harnesses stand in their second call when one of their containers is killed.
  const marker = `killed-${process.pid}`;
  const killed = Promise.withResolvers<void>();
  let waiting = 0;
  await using engine = await ScriptedEngine.start((request) => {
    if (!request.messages.some((message) => message.role === "assistant")) return solve(request);
    if (++waiting === 2) {
      assert.notEqual(docker("kill", containersWith(marker)[0] ?? "none"), "", "it was killed");
      killed.resolve();
    }
    return { ...solve(request), before: killed.promise };
  });
  const place = await writeTask(scratch, "small", "", { agent_seconds: 120 });
  await copyFile(chatHarness, join(place, "files", "chat-harness.ts"));
  const file = join(scratch, "run.yaml");
  const command = ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}", marker];
  const text = runFile({ engine: engine.url, tasks: ["small"], command });
  await writeFile(file, text.replace("sandbox: process\nunsafe_host: true", "sandbox: docker"));
  const result = await cli(["run", "-c", file, "-n", "2", "--warm", "1", "-o", join(scratch, "runs"), "--json"]);
  assert.equal(result.code, 0, result.stderr);
  const { run, rollouts } = jsonOf<{ run: string; rollouts: RolloutRecord[] }>(result);
  assert.deepEqual(rollouts.map((one) => one.attempt).sort(), [1, 2]);
  assert.equal(docker("ps", "-aq", "--filter", `label=alidade.run=${basename(run)}`), "", "nor is a warm one");
  assert.deepEqual(
    rollouts.map((one) => [one.verdict?.reward, one.verdict?.isolation]),
    [
      [1, "container"],
      [1, "container"],
    ],
  );
  const lost = (await readRollouts(run)).find((one) => one.error !== null);
  assert.equal(lost?.error?.code, "sandbox_died");
  assert.equal(lost?.verdict, null);
  const masked = (await readTrajectories(run)).filter((one) => !one.in_loss);
  assert.deepEqual(
    masked.map((one) => [one.reward, one.mask_reason, one.calls.length]),
    [[null, "sandbox_died", 2]],
  );
  assert.deepEqual(containersWith(marker), [], "nothing is left behind");
});

/** Containers in which a process has this word in its command line; others' may go away while one looks. */
function containersWith(marker: string): string[] {
  const ids = docker("ps", "-q", "--no-trunc", "--filter", "label=alidade.run").split("\n");
  return ids.filter((id) => id !== "" && docker("top", id, "-eo", "pid,args").includes(marker));
}

function docker(...args: string[]): string {
  try {
    return execFileSync("docker", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return "";
  }
}
