import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { newId } from "../../../base/schema/ids.ts";
import type { LogEntry } from "../../../base/schema/session-log.ts";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import type { ExportReport } from "../../../exporters/exporter.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { cli, cliProcess, jsonOf, startCli } from "../../fakes/processes/cli.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { goldenSibling, goldenTrajectory } from "../../fakes/records/golden-session.ts";
import { LogBuilder, user } from "../../fakes/records/log-builder.ts";

/** The folder of a run of one group. */
async function runFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-export-test-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "sessions"));
  const lines = [goldenTrajectory(), goldenSibling()].map((trajectory) => JSON.stringify(trajectory));
  await writeFile(join(folder, "trajectories.jsonl"), `${lines.join("\n")}\n`);
  return folder;
}

test("a file whose name promises another form is refused before it is written", async (t) => {
  const run = await runFolder(t);
  for (const [format, name, cure] of [
    ["flat", "rows.parquet", /flat writes jsonl: name it \.jsonl, or take --format parquet/],
    ["parquet", "rows.jsonl", /parquet writes parquet: name it \.parquet/],
  ] as const) {
    const refused = await cli(["export", "--run", run, "--format", format, "--out", join(run, name)]);
    assert.deepEqual([refused.code, cure.test(refused.stderr)], [2, true], refused.stderr);
    assert.ok(!(await readdir(run)).includes(name));
  }
});

test("a format's own options are flags, and the report says what was left out of what", async (t) => {
  const run = await runFolder(t);
  const out = join(run, "grpo.jsonl");
  const flags = ["--format", "trl-grpo", "--group-size", "2", "--out", out];
  const result = await cli(["export", "--run", run, ...flags, "--json"]);
  const { out: _, ...report } = jsonOf<ExportReport & { out: string }>(result);
  assert.deepEqual(report, {
    trajectories: 2,
    rows: 2,
    dummy_rows: 0,
    left_out: { undelivered: 1, other_row_of_rollout: 2 },
    left_out_rollouts: {},
    left_out_groups: {},
  });
  assert.equal((await readFile(out, "utf8")).trim().split("\n").length, 2);
  assert.deepEqual((await readdir(run)).toSorted(), ["grpo.jsonl", "sessions", "trajectories.jsonl"]);
  const said = await cli(["export", "--run", run, "--format", "nemo-rl", "--group-size", "3", "--out", "/dev/null"]);
  assert.equal(said.code, 1);
  assert.match(said.stderr, /0 rows of 2 trajectories; left out: .*2 rollouts group_left_out, 1 groups incomplete/);
});

test("a session that stated no temperature is untrained in every verb, and an export of it is a loud line, an exit code and no file", async (t) => {
  const run = await runFolder(t);
  const log = new LogBuilder({ purpose: "live" });
  log.call({ messages: [user("hi")] });
  for (const entry of log.entries) if (entry.type === "call_begun") entry.effective_sampling = {};
  await writeFile(join(run, "trajectories.jsonl"), `${JSON.stringify(reconstruct(log.entries))}\n`);
  const out = join(run, "rows.jsonl");
  await writeFile(out, "older\n");
  const cure = /temperature_unknown \(No call stated a temperature.*add `--temperature 1`/;
  const empty = await cli(["export", "--run", run, "--out", out]);
  assert.equal(empty.code, 1);
  assert.match(empty.stderr, /NOTHING TO TRAIN: .*rows\.jsonl is not written/);
  assert.match(empty.stderr, cure);
  assert.equal(await readFile(out, "utf8"), "older\n");
  const [shown, told] = [await cli(["show", "ses", "--run", run]), await cli(["fidelity", "--run", run])];
  assert.match(shown.stdout, /trainable +0 \(0 %\)/);
  assert.match(told.stdout, /2 sampled tokens, 0 trained[\s\S]*No call stated a temperature/);
  const stated = await cli(["export", "--run", run, "--temperature", "1", "--out", out]);
  assert.deepEqual([stated.code, (await readFile(out, "utf8")).split("\n").length], [0, 2], stated.stderr);
  assert.match((await cli(["fidelity", "--run", run, "--temperature", "1"])).stdout, /2 sampled tokens, 2 trained/);
});

test("no export is written over the records that it is made of", async (t) => {
  const run = await runFolder(t);
  await writeFile(join(run, "sessions", "ses1.jsonl"), "");
  await symlink("trajectories.jsonl", join(run, "rows.jsonl"));
  const before = await readFile(join(run, "trajectories.jsonl"), "utf8");
  for (const name of ["trajectories.jsonl", "rows.jsonl", "sessions/ses1.jsonl"]) {
    const out = join(run, name);
    const { code, stderr } = await cli(["export", "--run", run, "--format", "canonical", "--out", out]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /is a record of the run itself: name another file/);
  }
  assert.equal(await readFile(join(run, "trajectories.jsonl"), "utf8"), before);
});

test("an export that fails half-way, is refused or is stopped leaves the older file as it was, and nothing beside it", async (t) => {
  const run = await runFolder(t);
  const out = join(run, "rows.jsonl");
  await writeFile(out, "older\n");
  const line = `${JSON.stringify(goldenTrajectory())}\n`;
  const isUntouched = async (): Promise<void> => {
    assert.equal(await readFile(out, "utf8"), "older\n");
    assert.deepEqual((await readdir(run)).toSorted(), ["rows.jsonl", "sessions", "trajectories.jsonl"]);
  };
  const refused = await cli(["export", "--run", run, "--format", "verl", "--select", "tree", "--out", out]);
  assert.equal(refused.code, 2, refused.stderr);
  await isUntouched();
  await writeFile(join(run, "trajectories.jsonl"), `{}\n`);
  const failed = await cli(["export", "--run", run, "--format", "canonical", "--out", out]);
  assert.equal(failed.code, 1, failed.stderr);
  await isUntouched();
  await writeFile(join(run, "trajectories.jsonl"), line.repeat(3_000));
  await using stopped = startCli(["export", "--run", run, "--format", "canonical", "--out", out]);
  await stopped.until(async () => (await readdir(run)).length > 3);
  const { code, stderr } = await stopped.kill("SIGINT");
  assert.deepEqual([code, stderr.includes(`the export to ${out} was stopped`)], [1, true], stderr);
  await isUntouched();
});

test("an export takes the place of the file that is meant, with its mode, and writes into what is no file", async (t) => {
  const run = await runFolder(t);
  const [real, link, pipe] = ["real.jsonl", "link.jsonl", "pipe"].map((name) => join(run, name)) as [string, string, string];
  await writeFile(real, "older\n");
  await chmod(real, 0o600);
  await symlink("real.jsonl", link);
  const linked = await cli(["export", "--run", run, "--out", link]);
  assert.equal(linked.code, 0, linked.stderr);
  const rows = await readFile(real, "utf8");
  assert.equal(rows.trim().split("\n").length, 4);
  assert.deepEqual([(await lstat(link)).isSymbolicLink(), (await stat(real)).mode & 0o777], [true, 0o600]);
  await promisify(execFile)("mkfifo", [pipe]);
  const [piped, read] = await Promise.all([cli(["export", "--run", run, "--out", pipe]), readFile(pipe, "utf8")]);
  assert.deepEqual([piped.code, read === rows, (await stat(pipe)).isFIFO()], [0, true, true]);
});

test("a dash stands for standard output, for an export as for a page, and makes no file", async (t) => {
  const cwd = await runFolder(t);
  const rows = await cliProcess(["export", "--run", cwd, "--out", "-"], { cwd });
  assert.deepEqual([rows.code, rows.stdout.trim().split("\n").length], [0, 4], rows.stderr);
  const page = await cliProcess(["show", "sesgolden", "--run", cwd, "--html", "-"], { cwd });
  assert.match(page.stdout, /^<!doctype html>/i);
  assert.deepEqual((await readdir(cwd)).toSorted(), ["index.json", "sessions", "trajectories.jsonl"]);
});

test("Parquet is a binary file, whole from its first magic to its last", async (t) => {
  const run = await runFolder(t);
  const out = join(run, "rows.parquet");
  const report = jsonOf<ExportReport>(await cli(["export", "--run", run, "--format", "parquet", "--out", out, "--json"]));
  const bytes = await readFile(out);
  assert.deepEqual([report.rows, bytes.subarray(0, 4).toString(), bytes.subarray(-4).toString()], [4, "PAR1", "PAR1"]);
});

test("rows that only keep the place of a rollout are counted as dummies", async (t) => {
  const run = await runFolder(t);
  for (const format of ["flat", "parquet"]) {
    const out = join(run, format);
    const flags = ["--format", format, "--max-tokens", "1", "--out", out, "--json"];
    const { rows, dummy_rows } = jsonOf<ExportReport>(await cli(["export", "--run", run, ...flags]));
    assert.deepEqual([format, rows, dummy_rows], [format, 2, 2]);
  }
});

test("selection, length, cut-offs and classes reach the rows", async (t) => {
  const run = await runFolder(t);
  const rows = async (...flags: string[]) => {
    const { stdout, stderr, code } = await cli(["export", "--run", run, ...flags]);
    assert.equal(code, 0, stderr);
    return stdout.trim().split("\n").length;
  };
  assert.equal(await rows(), 4);
  assert.equal(await rows("--select", "main-agent"), 3);
  assert.equal(await rows("--leave-out", "sub_agent", "compaction"), 3);
  assert.equal(await rows("--select", "tree"), 2);
});

test("an option that means nothing to the format, or a wrong value, ends with 2 and says what to write", async (t) => {
  const run = await runFolder(t);
  const wrong: [string[], RegExp][] = [
    [["--format", "flat", "--group-size", "4"], /--group-size is for .*trl-grpo.*, not for flat/],
    [["--format", "trl-grpo", "--group-size", "0"], /trl-grpo has a wrong option group_size/],
    [["--format", "trl-async", "--advantage", "ppo"], /Allowed choices are grpo, dr_grpo, rloo, leave_one_out/],
    [["--format", "chat", "--max-tokens", "5"], /chat has no rows to select: leave out --max-tokens/],
    [["--format", "chat", "--oldest-step", "5"], /chat has no rows to select: leave out --oldest-step/],
    [["--oldest-step", "1.5"], /--oldest-step is 1\.5: give a whole number/],
    [["--format", "verl", "--select", "tree"], /verl cannot say rows of the selection tree/],
    [["--temperature", "-1"], /--temperature is -1: give a number above 0/],
    [["--leave-out", "nothing"], /--leave-out knows no "nothing"; there are: main, title/],
    [["--cut-off", "budget_spent=forgive"], /no cut-off rule: write CAUSE=train/],
  ];
  for (const [flags, message] of wrong) {
    const { code, stderr } = await cli(["export", "--run", run, ...flags]);
    assert.deepEqual([flags, code], [flags, 2]);
    assert.match(stderr, message);
  }
});

/** The log of a session that `serve` left. */
async function writeLog(run: string, id: string, entries: LogEntry[], spec: Partial<SessionSpec>): Promise<void> {
  const lines = entries.map((entry) =>
    JSON.stringify(entry.type === "opened" ? { ...entry, session_id: id, spec: { ...entry.spec, ...spec } } : entry),
  );
  await writeFile(join(run, "sessions", `${id}.jsonl`), `${lines.join("\n")}\n`);
}

test("of the sessions that were opened for one rollout the last attempt is exported, and the report says so", async (t) => {
  const run = await mkdtemp(join(tmpdir(), "alidade-export-test-"));
  t.after(() => rm(run, { recursive: true }));
  await mkdir(join(run, "sessions"));
  // Whatever the order in which a folder is listed, one of these two comes before its first attempt.
  for (const [session, rollout_id, attempt] of [
    ["sesa", "r0", 1],
    ["sesb", "r0", 2],
    ["sesc", "r1", 2],
    ["sesd", "r1", 1],
  ] as const) {
    const log = new LogBuilder();
    log.call({ messages: [user("hi")] });
    log.entries.push({ type: "rewarded", time: 5_000, revision: 1, reward: attempt, components: {} });
    await writeLog(run, session, log.entries, { rollout_id, attempt, sample_index: null });
  }
  // A third attempt of which nothing has been asked yet takes no other's place.
  await writeLog(run, "sese", new LogBuilder().entries, { rollout_id: "r0", attempt: 3 });
  const out = join(run, "rows.jsonl");
  const rowsOf = async (format: string): Promise<Record<string, unknown>[]> => {
    const report = jsonOf<ExportReport>(await cli(["export", "--run", run, "--format", format, "--out", out, "--json"]));
    assert.deepEqual([report.trajectories, report.left_out_rollouts], [4, format === "canonical" ? {} : { superseded: 2 }]);
    return (await readFile(out, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  const rows = await rowsOf("verl");
  assert.deepEqual(
    new Map(rows.map((row) => [row.rollout_id, row.reward_score])),
    new Map([
      ["r0", 2],
      ["r1", 2],
    ]),
  );
  assert.deepEqual(new Set(rows.map((row) => row.key)), new Set(["grp_0_0", "grp_1_0"]));
  const canonical = await rowsOf("canonical");
  assert.equal(canonical.length, 4);
  assert.match((await cli(["export", "--run", run, "--out", out])).stderr, /2 rows of 4 trajectories; left out: 2 rollouts superseded/);
  // The same of a run's own file.
  await rm(join(run, "sessions"), { recursive: true });
  await writeFile(join(run, "trajectories.jsonl"), canonical.map((line) => `${JSON.stringify(line)}\n`).join(""));
  assert.deepEqual(new Set((await rowsOf("flat")).map((row) => `${row.rollout_id} ${row.attempt}`)), new Set(["r0 2", "r1 2"]));
});

test("of two sessions that an older version opened for one attempt the later one is exported, whatever their ids", async (t) => {
  const run = await mkdtemp(join(tmpdir(), "alidade-export-test-"));
  t.after(() => rm(run, { recursive: true }));
  await mkdir(join(run, "sessions"));
  for (let index = 0; index < 12; index++)
    for (const [time, reward] of [
      [1_000, 0],
      [9_000, 1],
    ] as const) {
      const log = new LogBuilder();
      log.call({ messages: [user("hi")] });
      log.entries.push({ type: "rewarded", time: 9_500, revision: 1, reward, components: {} });
      const entries = log.entries.map((entry) => (entry.type === "opened" ? { ...entry, time } : entry));
      await writeLog(run, newId("ses"), entries, { rollout_id: `r${index}`, attempt: 1 });
    }
  const { stdout, stderr } = await cli(["export", "--run", run]);
  assert.deepEqual(
    stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { reward: number }).reward),
    Array.from({ length: 12 }, () => 1),
  );
  assert.match(stderr, /12 rows of 24 trajectories; left out: 12 rollouts superseded/);
});

test("the sessions of a team that serve recorded are exported as one rollout with the reward that one of them was given", async (t) => {
  const run = await mkdtemp(join(tmpdir(), "alidade-export-test-"));
  t.after(() => rm(run, { recursive: true }));
  {
    await using at = await proxyAt((request) => ({ text: `to ${JSON.stringify(request.messages.at(-1)?.content)}` }), {
      store: new DiskStore(join(run, "sessions")),
    });
    for (const rollout_id of ["r0", "r1"]) {
      const team = await Promise.all(
        ["planner", "coder", "critic"].map((member) => at.open({ purpose: "train", task_id: "t", group_id: "g", rollout_id, member })),
      );
      for (const client of team) for (const content of ["one", "two"]) await client.say([{ role: "user", content }]);
      await at.proxy.reward((team[rollout_id === "r0" ? 0 : 2] as Client).sessionId, rollout_id === "r0" ? 1 : 0, { tests: 1 });
    }
  }
  const out = join(run, "rows.jsonl");
  const report = jsonOf<ExportReport>(await cli(["export", "--run", run, "--format", "verl", "--out", out, "--json"]));
  assert.deepEqual([report.trajectories, report.rows, report.left_out_rollouts], [6, 12, {}]);
  const rows = (await readFile(out, "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { rollout_id: string; session_id: number; agent: string; reward_score: number });
  const seen = Map.groupBy(rows, (row) => `${row.rollout_id} ${row.session_id} ${row.agent} ${row.reward_score}`);
  const agents = ["coder", "critic", "planner"];
  assert.deepEqual(
    [...seen].map(([name, { length }]) => `${name} × ${length}`).toSorted(),
    ["r0 0", "r1 1"].flatMap((name) => agents.map((agent) => `${name} ${agent} ${name === "r0 0" ? 1 : 0} × 2`)),
  );
  const fidelity = await cli(["fidelity", "--run", run]);
  assert.match(fidelity.stdout, /^2 rollouts \(2 in the loss\), 12 calls/);
});

test("what a damaged log holds no more is named and costs its calls only", async (t) => {
  const run = await mkdtemp(join(tmpdir(), "alidade-export-test-"));
  t.after(() => rm(run, { recursive: true }));
  await mkdir(join(run, "sessions"));
  for (const id of ["sesaaa", "sesbbb", "sesccc"]) {
    const log = new LogBuilder();
    const first = log.call({ messages: [user("hi")] });
    log.call({ messages: [user("hi"), user("again")] });
    const entries = log.entries.filter((entry) => id !== "sesbbb" || !("call_id" in entry && entry.call_id === first));
    await writeLog(run, id, entries, { rollout_id: id });
  }
  const { stdout, stderr, code } = await cli(["export", "--run", run]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(new Set(stdout.match(/ses(?:aaa|bbb|ccc)/g)), new Set(["sesaaa", "sesccc"]));
  assert.match(stderr, /call \w+ of session sesbbb is left out: it goes on from 1 entries of call/);
  const fidelity = await cli(["fidelity", "--run", run]);
  assert.deepEqual([fidelity.code, fidelity.stderr.includes("of session sesbbb is left out")], [0, true]);
});

test("the session of an attempt that was killed is no row until its run is taken up again", async (t) => {
  const run = await mkdtemp(join(tmpdir(), "alidade-export-test-"));
  t.after(() => rm(run, { recursive: true }));
  await mkdir(join(run, "sessions"));
  const log = new LogBuilder();
  log.call({ messages: [user("hi")] });
  await writeFile(join(run, "sessions", "seskilled.jsonl"), `${log.entries.map((entry) => JSON.stringify(entry)).join("\n")}\n`);
  const none = { exit_code: null, stop_reason: null, verdict: null, error: null, sandbox: null, output_tail: null, summary: null };
  const task = { task_id: "t", task_hash: "h", group_id: "g", group_size: 1, sample_index: 0, harness: "pi", harness_version: null };
  const record = { rollout_id: "r0", attempt: 1, ...task, state: "run", session_id: "seskilled", times: {}, ...none };
  await writeFile(join(run, "rollouts.jsonl"), `${JSON.stringify(record)}\n`);
  const { stdout, stderr, code } = await cli(["export", "--run", run]);
  assert.deepEqual([stdout, code], ["", 1]);
  assert.match(stderr, /session seskilled of rollout r0 is left out: it is not over: go on with its run by --resume/);
});
