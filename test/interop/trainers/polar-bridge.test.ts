/**
 * Polar's bridge for slime submits to `service --polar`, is called back, and its samples train. No registry has the bridge or slime,
 * so variables name checkouts:
 *
 *     ALIDADE_POLAR=~/ProRL-Agent-Server ALIDADE_SLIME=~/slime npm test -- trainers/polar-bridge
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { taughtModel } from "../../../examples/train/taught.ts";
import { startPracticeEngine } from "../../../practice/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { startCli } from "../../fakes/processes/cli.ts";
import { need } from "../../needs.ts";
import { startTrainer } from "./start-trainer.ts";

const folder = scratchFolder("polar-bridge");
/** Sampled by the embedded engine, computed again by transformers, both in float32. */
const tolerance = 1e-4;
const rollouts = 8;
/** The reward is noise of what was said: hardly two rollouts of a group have the same, and each step moves the weights far. */
const grader = { kind: "script", command: ["sh", "-c", `echo "{\\"reward\\": $(cksum <answer | awk '{print $1 % 1000 / 1000}')}"`] };

test("Polar's bridge for slime takes three steps on tasks of the service", { timeout: 580_000 }, async (t) => {
  const paths = checkouts(t);
  if (paths === null || !(await need(t, "consumers"))) return;
  const trainer = startTrainer({ name: "polar_bridge", folder, signal: t.signal, paths });
  const policy = join(folder, "policy");
  await cp(taughtModel, policy, { recursive: true });
  await using engine = await startPracticeEngine({ weights: policy, model: "taught", seed: 1, signal: t.signal });
  await using _ = await serve(engine.url);
  await writeFile(join(folder, "rig.json"), JSON.stringify({ engine: engine.url, policy }));
  await trainer.ready;
  const { steps, version } = await trainer.play();
  for (const step of steps) t.diagnostic(`${version}: ${JSON.stringify(step)}`);
  assert.deepEqual(
    steps.map(({ step }) => step),
    [1, 2, 3],
  );
  for (const { step, worst, tokens, loss, exported, apart, rows, rollouts: counted } of steps) {
    assert.ok(worst <= tolerance, `step ${step}: ${worst} is more than ${tolerance}`);
    const difference = Math.max(Math.abs(loss - exported), apart);
    assert.ok(difference <= tolerance, `step ${step}: the loss is ${loss} live and ${exported} of the export, gradients ${apart} apart`);
    assert.ok(tokens > 0);
    assert.equal(counted, rollouts);
    assert.ok(rows > counted, "no rollout has several rows");
  }
});

/** Where Python finds them; null: the test is left out. */
function checkouts(t: TestContext): string[] | null {
  const { ALIDADE_POLAR: polar, ALIDADE_SLIME: slime } = process.env;
  if (polar && slime) return [join(polar, "src"), slime];
  const left = "ALIDADE_POLAR or ALIDADE_SLIME names no checkout; it is run by hand";
  t.diagnostic(left);
  // No registry has the checkouts. So with ALIDADE_TEST_ALL it is only reported, and not counted as missing.
  if (process.env.ALIDADE_TEST_ALL !== "1") t.skip(left);
  return null;
}

/** Two tasks that ask for talk. The bridge listens on loopback for what it is told. */
async function serve(url: string): Promise<AsyncDisposable> {
  const tasks = [];
  for (const subject of ["sea", "desert"]) {
    const place = join(folder, subject);
    await mkdir(place);
    await writeFile(join(place, "task.yaml"), JSON.stringify({ task_id: subject, instruction: "Talk.", grader }));
    tasks.push(place);
  }
  const harness = { command: [process.execPath, join(import.meta.dirname, "talk.ts"), "{instruction}"] };
  await writeFile(join(folder, "run.yaml"), JSON.stringify({ engine: { url }, sandbox: "process", unsafe_host: true, harness, tasks }));
  const flags = ["-c", "run.yaml", "-p", "0", "--json", "--concurrency", "4", "--polar", "--allow-private-webhook"];
  const running = startCli(["service", ...flags], { cwd: folder });
  await running.until(() => existsSync(join(folder, "runs/service/service.json")));
  return running;
}
