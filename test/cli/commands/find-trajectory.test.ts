import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findTrajectory } from "../../../cli/commands/records/find-trajectory.ts";
import { runFolderOf } from "../../../cli/commands/records/run-folder-of.ts";
import { cliProcess } from "../../fakes/processes/cli.ts";
import { goldenTrajectory } from "../../fakes/records/golden-session.ts";
import { LogBuilder, user } from "../../fakes/records/log-builder.ts";

test("where no run is named the newest one that recorded anything is taken, not the folder of one that never began", async (t) => {
  const cwd = await mkdtemp(join(tmpdir(), "alidade-newest-"));
  t.after(() => rm(cwd, { recursive: true }));
  for (const [name, lines, second] of [
    ["older", `${JSON.stringify(goldenTrajectory())}\n`, 1],
    ["refused", "", 2],
  ] as const) {
    const folder = join(cwd, "runs", name);
    await mkdir(folder, { recursive: true });
    for (const [file, text] of Object.entries({ "run.json": "{}\n", "rollouts.jsonl": "", "trajectories.jsonl": lines }))
      await writeFile(join(folder, file), text);
    await utimes(folder, second, second);
  }
  const exported = await cliProcess(["export", "--format", "canonical"], { cwd });
  assert.equal(exported.stdout.trim().split("\n").length, 1, exported.stderr);
  assert.match(exported.stderr, /of 1 trajectories/);
  await rm(join(cwd, "runs", "older"), { recursive: true });
  const nothing = await cliProcess(["export"], { cwd });
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /no run below runs\/ here/);
  const named = await cliProcess(["export", "--run", "runs/refused"], { cwd });
  assert.equal(named.code, 1, "a folder that is named is the one that is meant");
  assert.match(named.stderr, /0 rows of 0 trajectories\nalidade: NOTHING TO TRAIN/);
});

test("the folder that was given to serve --out is the one that --run takes", async (t) => {
  const out = await mkdtemp(join(tmpdir(), "alidade-served-"));
  t.after(() => rm(out, { recursive: true }));
  await assert.rejects(runFolderOf(out), { code: "not_found" });
  await mkdir(join(out, "serve", "sessions"), { recursive: true });
  assert.equal(await runFolderOf(out), join(out, "serve"));
});

test("the beginning of a name finds a session of serve too, lists what it may be, and what a killed process cut off is told", async (t) => {
  const run = await mkdtemp(join(tmpdir(), "alidade-find-"));
  t.after(() => rm(run, { recursive: true }));
  await mkdir(join(run, "sessions"));
  const log = new LogBuilder({ rollout_id: null });
  log.call({ messages: [user("hi")] });
  const lines = log.entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
  for (const id of ["sesaab", "sesabb"]) await writeFile(join(run, "sessions", `${id}.jsonl`), lines.replaceAll("sestest", id));
  assert.equal((await findTrajectory(run, "sesaa")).session_id, "sesaab");
  const wrong = (name: string, message: string | RegExp) => assert.rejects(findTrajectory(run, name), { code: "not_found", message });
  await wrong("sesa", '"sesa" is the beginning of sesaab, sesabb: write more of it');
  await wrong("x", `${run} holds no rollout or session "x"; it has sesaab, sesabb`);

  const golden = goldenTrajectory();
  const attempt = (rollout_id: string, attempt: number) => ({ ...golden, session_id: `ses${rollout_id}${attempt}`, rollout_id, attempt });
  const written = [attempt("rolla", 1), attempt("rolla", 2), attempt("rollb", 1)].map((one) => `${JSON.stringify(one)}\n`).join("");
  await writeFile(join(run, "trajectories.jsonl"), `${written}{"schema_ver`);
  assert.equal((await findTrajectory(run, "rolla")).attempt, 2);
  await wrong("roll", '"roll" is the beginning of rolla, rollb: write more of it');
  await wrong("rollc", /it has rolla, rollb, sesaab, sesabb; the last line of its trajectories\.jsonl was cut off/);
});

test("a session that serve recorded is found by the names that its calls gave, the last attempt of a rollout first", async (t) => {
  const run = await mkdtemp(join(tmpdir(), "alidade-given-names-"));
  t.after(() => rm(run, { recursive: true }));
  await mkdir(join(run, "sessions"));
  for (const [id, rollout_id, attempt] of [
    ["sesb", "g1-0", 2],
    ["sesc", "g1-0", 1],
    ["sesd", "g1-1", 1],
  ] as const) {
    const log = new LogBuilder({ rollout_id, attempt, task_id: "slugify" });
    log.call({ messages: [user("hi")] });
    const lines = log.entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
    await writeFile(join(run, "sessions", `${id}.jsonl`), lines.replaceAll("sestest", id));
  }
  assert.equal((await findTrajectory(run, "g1-0")).session_id, "sesb");
  assert.equal((await findTrajectory(run, "g1-1")).session_id, "sesd");
  await assert.rejects(findTrajectory(run, "g1"), { message: '"g1" is the beginning of g1-0, g1-1: write more of it' });
  await assert.rejects(findTrajectory(run, "g2"), { message: `${run} holds no rollout or session "g2"; it has g1-0, g1-1` });
});
