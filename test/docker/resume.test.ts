/** A run that is killed while its sandboxes are being made: nothing is on record yet, and they are there. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFile, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cliProcess, jsonOf, startCli } from "../fakes/processes/cli.ts";
import { chatHarness, runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("resume");

/** So many bytes take a while to deliver into a sandbox: long enough to be killed in it. */
const taskBytes = 24 * 1024 * 1024;
const rollouts = 4;

for (const sandbox of ["docker", "process"])
  test(`${sandbox}: of a run that was killed during INIT nothing is left once it was resumed`, { timeout: 300_000 }, async (t) => {
    if (sandbox === "docker" && !(await need(t, "docker"))) return;
    const folder = join(scratch, sandbox);
    const temporary = join(folder, "tmp");
    await mkdir(temporary, { recursive: true });
    await using engine = await ScriptedEngine.start(solve);
    const place = await writeTask(folder, "large");
    await copyFile(chatHarness, join(place, "files", "chat-harness.ts"));
    await writeFile(join(place, "files", "large.bin"), Buffer.alloc(taskBytes));
    const file = join(folder, "run.yaml");
    const node = sandbox === "docker" ? "/opt/alidade/node/bin/node" : "node";
    const more = `concurrency: { init: ${rollouts}, run: ${rollouts} }\n`;
    const text = runFile({ engine: engine.url, tasks: ["large"], command: [node, "chat-harness.ts", "{instruction}"], more });
    await writeFile(file, text.replace("sandbox: process\n", `sandbox: ${sandbox}\n`));
    const env = { TMPDIR: temporary };
    const runs = join(folder, "runs");
    const left = async (): Promise<string[]> =>
      sandbox === "docker" ? leftInDocker((await readdir(runs))[0] ?? "none") : foldersIn(temporary);
    const made = rollouts * (sandbox === "docker" ? 3 : 1); // a container and its two volumes; a folder
    const areMade = async (): Promise<boolean> => (await left().catch(() => [])).length === made && (await areOwned(temporary));

    await using running = startCli(["run", "-c", file, "-n", `${rollouts}`, "-o", runs], { env });
    await running.until(areMade);
    await running.kill("SIGKILL");
    const path = join(runs, (await readdir(runs))[0] ?? "");
    assert.equal(await readFile(join(path, "rollouts.jsonl"), "utf8"), "", "it was killed before anything was on record");
    assert.equal((await left()).length, made, "and left all of it behind");

    const resumed = await cliProcess(["run", "--resume", path, "--json"], { env });
    assert.equal(resumed.code, 0, resumed.stderr);
    const done = jsonOf<{ rollouts: RolloutRecord[] }>(resumed).rollouts;
    assert.deepEqual(
      done.map((one) => [one.attempt, one.verdict?.reward]),
      done.map(() => [1, 1]),
    );
    assert.equal(done.length, rollouts);
    assert.deepEqual(await left(), []);
  });

async function areOwned(folder: string): Promise<boolean> {
  const owners = (await foldersIn(folder)).map((name) => stat(join(folder, name, "owner.json")).then(({ size }) => size > 0));
  return (await Promise.allSettled(owners)).every((one) => one.status === "fulfilled" && one.value);
}

/** Folders of process sandboxes; the place at which all of them are seen stays. */
async function foldersIn(temporary: string): Promise<string[]> {
  return (await readdir(temporary)).filter((name) => name.startsWith("alidade-sandbox-"));
}

/** Containers and volumes of a run. */
function leftInDocker(run: string): string[] {
  const label = ["--filter", `label=alidade.run=${run}`];
  const ids = (...args: string[]) => execFileSync("docker", [...args, "-q", ...label], { encoding: "utf8" }).split("\n");
  return [...ids("ps", "-a"), ...ids("volume", "ls")].filter((id) => id !== "");
}
