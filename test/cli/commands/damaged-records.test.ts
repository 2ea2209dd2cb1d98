/** A line of a run's records that a disk broke costs its own rollout: all others are exported, shown and counted. */
import assert from "node:assert/strict";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import type { ExportReport } from "../../../exporters/exporter.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf, startCli } from "../../fakes/processes/cli.ts";
import { LogBuilder, user } from "../../fakes/records/log-builder.ts";
import { runFile, solve, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("damaged-records");
const whole = join(scratch, "whole");

type Ran = { run: string; rollouts: RolloutRecord[]; damaged: string[] };

/** Three rollouts of one task, all of them right. */
before(async () => {
  await using engine = await ScriptedEngine.start(solve);
  const folder = join(scratch, "tasks");
  await mkdir(folder);
  await writeTask(folder, "small");
  await writeFile(join(folder, "run.yaml"), runFile({ engine: engine.url, tasks: ["small"] }));
  const result = await cli(["run", "-c", join(folder, "run.yaml"), "-o", join(scratch, "runs"), "-n", "3", "--json"]);
  assert.equal(result.code, 0, result.stderr);
  await cp(jsonOf<Ran>(result).run, whole, { recursive: true });
});

/** A copy of the run with one line of one file broken: the `nth` of those that hold these words, counted from 0. */
async function damaged(name: string, file: string, holds: string, nth = 0): Promise<{ run: string; line: number; text: string }> {
  const run = join(scratch, name);
  await cp(whole, run, { recursive: true });
  const lines = (await readFile(join(run, file), "utf8")).split("\n");
  const at = lines.flatMap((line, index) => (line.includes(holds) ? [index] : []))[nth] ?? assert.fail(`no line holds ${holds}`);
  const text = lines[at] ?? "";
  lines[at] = `${text.slice(0, 40)}\0\0${text.slice(42)}`.replace('"', "\u0000");
  await writeFile(join(run, file), lines.join("\n"));
  return { run, line: at + 1, text };
}

async function exported(run: string): Promise<ExportReport & { stderr: string; rollouts: string[] }> {
  const out = `${run}.jsonl`;
  const result = await cli(["export", "--run", run, "--format", "flat", "--out", out, "--json"]);
  assert.equal(result.code, 0, result.stderr + result.stdout);
  const rows = (await readFile(out, "utf8")).split("\n").slice(0, -1);
  const rollouts = rows.map((row) => (JSON.parse(row) as { rollout_id: string }).rollout_id);
  return { ...jsonOf<ExportReport>(result), stderr: result.stderr, rollouts: rollouts.toSorted() };
}

async function resumed(run: string): Promise<Ran> {
  await using engine = await ScriptedEngine.start(solve);
  const result = await cli(["run", "--resume", run, "--engine", engine.url, "--json"]);
  assert.equal(result.code, 0, result.stderr + result.stdout);
  return jsonOf<Ran>(result);
}

const attempts = ({ rollouts }: Ran): [number, number, number | null | undefined][] =>
  rollouts.map(({ sample_index, attempt, verdict }) => [sample_index, attempt, verdict?.reward]);

test("a damaged trajectory costs its own rollout: the others are exported, counted and shown, and --resume runs that one again", async () => {
  const { run, line, text } = await damaged("trajectory", "trajectories.jsonl", '"rollout_id"', 1);
  const { rollout_id, session_id, group } = JSON.parse(text) as { rollout_id: string; session_id: string; group: { sample_index: number } };
  const report = await exported(run);
  assert.deepEqual(report.left_out_rollouts, { damaged: 1 });
  assert.equal(report.rollouts.length, 2);
  assert.ok(!report.rollouts.includes(rollout_id));
  assert.match(report.stderr, new RegExp(`trajectories\\.jsonl line ${line} is not a record of ours`));
  assert.match(report.stderr, new RegExp(`session ${session_id} of rollout ${rollout_id} is left out: its trajectory cannot be read`));

  const fidelity = await cli(["fidelity", "--run", run, "--json"]);
  const summary = jsonOf<{ rollouts: number; damaged: number }>(fidelity);
  assert.deepEqual([fidelity.code, summary.rollouts, summary.damaged], [0, 2, 1]);
  const other = await cli(["show", report.rollouts[0] ?? "", "--run", run]);
  assert.equal(other.code, 0, other.stderr);
  assert.match(other.stderr, new RegExp(`line ${line} is not a record of ours`));
  const lost = await cli(["show", rollout_id, "--run", run]);
  assert.deepEqual([lost.code, /1 of its trajectories cannot be read: name the session/.test(lost.stderr)], [2, true], lost.stderr);
  assert.equal((await cli(["show", session_id, "--run", run])).code, 0);

  const again = await resumed(run);
  assert.deepEqual(
    attempts(again),
    [0, 1, 2].map((index) => [index, index === group.sample_index ? 2 : 1, 1]),
  );
  assert.match(again.damaged.join(), new RegExp(`trajectories\\.jsonl line ${line} is not a record of ours`));
  assert.deepEqual((await exported(run)).rollouts.length, 3);
});

test("a damaged record of a rollout that is done leaves its trajectory where it is, and --resume runs that rollout again", async () => {
  const { run, line, text } = await damaged("record", "rollouts.jsonl", '"state":"done"', 1);
  const { sample_index } = JSON.parse(text) as RolloutRecord;
  const report = await exported(run);
  assert.equal(report.rollouts.length, 3);
  const again = await resumed(run);
  assert.deepEqual(
    attempts(again),
    [0, 1, 2].map((index) => [index, index === sample_index ? 2 : 1, 1]),
  );
  assert.match(again.damaged.join(), new RegExp(`rollouts\\.jsonl line ${line} is not a record of ours`));
  assert.deepEqual((await exported(run)).rollouts.length, 3);
});

test("a session whose every record is damaged is no row: nothing says what it is worth", async () => {
  const { run, text } = await damaged("records", "rollouts.jsonl", '"state":"run"');
  const { session_id } = JSON.parse(text) as RolloutRecord;
  for (const [file, name] of [
    ["rollouts.jsonl", '"state":"done"'],
    ["trajectories.jsonl", '"rollout_id"'],
  ] as const) {
    const lines = (await readFile(join(run, file), "utf8")).split("\n");
    await writeFile(join(run, file), lines.filter((line) => !line.includes(name) || !line.includes(`"${session_id}"`)).join("\n"));
  }
  const report = await exported(run);
  assert.deepEqual([report.rollouts.length, report.left_out_rollouts], [2, { damaged: 1 }]);
  assert.match(report.stderr, new RegExp(`session ${session_id} of rollout \\S+ is left out: no record that can be read`));
});

test("a session whose opening line is damaged is named, and export, fidelity, show and serve go on with the others", async () => {
  const out = join(scratch, "served");
  const run = join(out, "serve");
  await mkdir(join(run, "sessions"), { recursive: true });
  for (const id of ["sesaaa", "sesbbb"]) {
    const log = new LogBuilder();
    log.call({ messages: [user("hi")] });
    const lines = log.entries.map((entry) => `${JSON.stringify(entry)}\n`.replaceAll("sestest", id));
    if (id === "sesbbb") lines[0] = `${lines[0]?.slice(0, 30)}\0${lines[0]?.slice(31)}`;
    await writeFile(join(run, "sessions", `${id}.jsonl`), lines.join(""));
  }
  const said = /sesbbb.* line 1 is not a record of ours/;
  const result = await cli(["export", "--run", run, "--out", `${out}.jsonl`, "--json"]);
  const report = jsonOf<ExportReport>(result);
  assert.deepEqual([result.code, report.trajectories, report.left_out_rollouts], [0, 1, { damaged: 1 }], result.stderr);
  assert.match(result.stderr, said);
  const fidelity = await cli(["fidelity", "--run", run]);
  assert.deepEqual([fidelity.code, said.test(fidelity.stderr)], [0, true], fidelity.stderr);
  assert.match(fidelity.stdout, /1 rollouts are not counted: their records are damaged/);
  assert.equal((await cli(["show", "sesaaa", "--run", run])).code, 0);
  const lost = await cli(["show", "sesbbb", "--run", run]);
  assert.deepEqual([lost.code === 0, said.test(lost.stderr)], [false, true], lost.stderr);

  await using engine = await ScriptedEngine.start(solve);
  const running = startCli(["serve", "--engine", engine.url, "--out", out, "--port", "0", "--control-port", "0", "--json"]);
  await using _running = running;
  await running.until(() => running.stdout.includes("\n"));
  const { control_url, control_token } = JSON.parse(running.stdout) as { control_url: string; control_token: string };
  const listed = await fetch(`${control_url}/sessions`, { headers: { authorization: `Bearer ${control_token}` } });
  const { sessions } = (await listed.json()) as { sessions: { session_id: string }[] };
  assert.ok(sessions.some(({ session_id }) => session_id === "sesaaa"));
  assert.match(running.stderr, /bringing back session sesbbb, which is left out: .*line 1 is not a record of ours/);
});
