/** Kills a run of real harnesses twice with -9. Each harness goes on from its last finished call, and its work is graded. */
import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { CallFinished, LogLine } from "../../base/schema/session-log.ts";
import { loadPlays, playsFor } from "../../examples/demo/plays.ts";
import { harnessNamed } from "../../harnesses/registry.ts";
import { startPracticeEngine } from "../../practice/start.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { readRollouts, readTrajectories } from "../../rollouts/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { type RunningCli, startCli } from "../fakes/processes/cli.ts";
import { startRecordingRelay } from "../fakes/proxies/recording-relay.ts";
import { installedPack } from "../harness/installed-pack.ts";
import { need } from "../needs.ts";
import { examples } from "./play.ts";

const scratch = scratchFolder("resume-harnesses");
const task = join(examples, "demo/tasks/parse-duration");

for (const [harness, sandbox] of [
  ["pi", "process"],
  ["codex", "process"],
  ["claude-code", "process"],
  ["pi", "docker"],
] as const)
  test(`${harness} in ${sandbox}: a rollout that is killed twice is graded, and none of its finished calls is sampled again`, {
    timeout: 600_000,
  }, async (t) => {
    if (
      sandbox === "docker"
        ? !((await need(t, "docker")) && (await need(t, `harness:${harness}`)))
        : !(await installedPack(t, harnessNamed(harness)))
    )
      return;
    await using engine = await startPracticeEngine({ seed: 3, signal: t.signal });
    await using relay = await startRecordingRelay(engine.url);
    const place = join(scratch, `${harness}-${sandbox}`);
    await mkdir(place);
    const [look, fix, check, answer] = playsFor(harness, await loadPlays(join(task, "plays.json")), "right");
    const sampling = [look, check, fix, check, answer];
    const run = { engine: { url: relay.url }, harness, sandbox, unsafe_host: sandbox === "process", samples: 1, tasks: [task], sampling };
    await writeFile(join(place, "run.yaml"), JSON.stringify(run));
    const out = join(place, "runs");
    const path = async () => join(out, (await readdir(out).catch(() => []))[0] ?? "none");

    let running: RunningCli = startCli(["run", "-c", join(place, "run.yaml"), "-o", out, "--json"]);
    const known = [0];
    for (const more of [2, 1]) {
      await using dying = running;
      const before = relay.exchanges.length;
      await dying.until(() => relay.exchanges.length >= before + more);
      await dying.kill("SIGKILL");
      const finished = finishedIn(await logOf(await path())).length;
      assert.ok(finished >= (known.at(-1) ?? 0) && finished < sampling.length, `${finished} of ${sampling.length} calls had finished`);
      known.push(finished);
      running = startCli(["run", "--resume", await path(), "--json"]);
    }
    await using last = running;
    const asked = relay.exchanges.length;
    const ended = await last.ended;
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal(relay.exchanges.length - asked, sampling.length - (known.at(-1) ?? 0), `finished before: ${known.join()}`);

    const record = (await readRollouts(await path())).at(-1);
    assert.deepEqual(
      [record?.attempt, record?.error, record?.verdict?.reward, record?.resume?.how, record?.resume?.again_tokens],
      [3, null, 1, "replay", 0],
      record?.output_tail ?? "",
    );
    const finished = finishedIn(await logOf(await path()));
    assert.equal(finished.length, sampling.length, "each turn was sampled to its end once");
    const trajectories = await readTrajectories(await path());
    const [trajectory] = trajectories;
    assert.ok(trajectory && trajectories.length === 1);
    const { fidelity, resumed, replay } = trajectory;
    // A grammar forces the engine's tokens in these plays, so none of them is trained.
    const tokens = finished.reduce((sum, { sampled_ids }) => sum + (sampled_ids?.length ?? 0), 0);
    assert.equal(fidelity.sampled_tokens, tokens, "and is counted once");
    assert.ok(tokens > 0);
    assert.deepEqual(
      resumed.map(({ calls }) => calls),
      known.slice(1),
    );
    t.diagnostic(`finished before the kills: ${known.slice(1).join(" and ")} of ${sampling.length}; ${JSON.stringify(replay)}`);
  });

async function logOf(path: string): Promise<LogLine[]> {
  const store = new DiskStore(join(path, "sessions"));
  const ids = await store.list();
  assert.ok(ids.length <= 1, "the session goes on");
  return ids[0] === undefined ? [] : store.read(ids[0]);
}

function finishedIn(lines: readonly LogLine[]): CallFinished[] {
  return lines.filter((line) => line.type === "call_finished").filter(({ error }) => error === null);
}
