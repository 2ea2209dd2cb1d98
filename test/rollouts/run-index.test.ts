import assert from "node:assert/strict";
import { appendFile, chmod, mkdir, mkdtemp, open, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { RolloutRecord, Verdict } from "../../base/schema/rollout.ts";
import { indexLayout } from "../../rollouts/records/index-file.ts";
import { writeIndexLines } from "../../rollouts/records/index-lines.ts";
import { openIndex } from "../../rollouts/records/run-index.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";
import { LogBuilder, user } from "../fakes/records/log-builder.ts";

const lineOf = (rollout_id: string, reward: number): string =>
  `${JSON.stringify({ ...goldenTrajectory(), rollout_id, session_id: `ses${rollout_id}`, reward })}\n`;

async function runWith(t: TestContext, ...lines: string[]): Promise<{ folder: string; file: string }> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-index-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "sessions"));
  const file = join(folder, "trajectories.jsonl");
  await writeFile(file, lines.join(""));
  return { folder, file };
}

const verdict: Verdict = {
  ...{ reward: 0, components: {}, status: "graded", tier: "T3", isolation: "container", grader: "tests" },
  ...{ evidence: {}, error: null, duration_ms: 5 },
};

const rollout: RolloutRecord = {
  schema_version: 1,
  ...{ rollout_id: "a", attempt: 1, task_id: "task", task_hash: "h", group_id: "grp", group_size: 2, sample_index: 0 },
  ...{ harness: "pi", harness_version: "1", state: "done", session_id: null, stop_reason: "exited", exit_code: 0, verdict: null },
  ...{ revision: 1, error: null, mask_reason: null, sandbox: null, setup: null, work: null, steps: [], network: null, times: {} },
  ...{ output_tail: null, summary: null, services: null, forked_from: null, replay: null, resume: null, user: null },
};

async function rewardsOf(folder: string): Promise<(number | null)[]> {
  return (await openIndex(folder)).trajectories.map(({ figures }) => figures.reward);
}

/** Other bytes in the place of the old ones, without a trace in the file's figures. */
async function changeUnseen(file: string, change: (text: string) => string): Promise<void> {
  const { atime, mtime } = await stat(file);
  await writeFile(file, change(await readFile(file, "utf8")));
  await utimes(file, atime, mtime);
}

test("a run's index is made once; where the records are as they were they are not read again", async (t) => {
  const { folder, file } = await runWith(t, lineOf("a", 1), lineOf("b", 0));
  await utimes(file, 1000, 1000);
  assert.deepEqual(await rewardsOf(folder), [1, 0]);
  await changeUnseen(file, (text) => text.replace(/./, "x"));
  assert.deepEqual(await rewardsOf(folder), [1, 0]);
  await utimes(file, 2000, 2000);
  const index = await openIndex(folder);
  assert.deepEqual([index.trajectories.length, index.damaged.trajectories.length], [1, 1], "a file that was touched is read again");
});

test("a file that grew is read from its old end; one that was written anew is read whole", async (t) => {
  const { folder, file } = await runWith(t, lineOf("a", 1), lineOf("b", 0));
  await rewardsOf(folder);
  await changeUnseen(file, (text) => text.replace(/./, "x"));
  await appendFile(file, lineOf("c", 0.5));
  assert.deepEqual(await rewardsOf(folder), [1, 0, 0.5]);
  await writeFile(`${file}.new`, lineOf("b", 0) + lineOf("a", 1) + lineOf("c", 0.5) + lineOf("d", 0));
  await rename(`${file}.new`, file);
  assert.deepEqual(await rewardsOf(folder), [0, 1, 0.5, 0]);
  await writeFile(file, lineOf("e", 0.25));
  assert.deepEqual(await rewardsOf(folder), [0.25], "in place, and shorter");
});

test("an index that is missing, cut, changed or cannot be written costs time alone", async (t) => {
  const { folder } = await runWith(t, lineOf("a", 1));
  await rewardsOf(folder);
  const index = join(folder, "index.json");
  const whole = await readFile(index, "utf8");
  for (const text of ["", whole.slice(0, -5), whole.replace('"reward":1', '"reward":9'), "{}", "null\nnull"]) {
    await writeFile(index, text);
    assert.deepEqual(await rewardsOf(folder), [1]);
    assert.equal(await readFile(index, "utf8"), whole, "it is written again");
  }
  await rm(index);
  await mkdir(index);
  await chmod(folder, 0o500);
  assert.deepEqual(await rewardsOf(folder), [1]);
  await chmod(folder, 0o700);
});

test("a session that has no trajectory is in the index by its log, as it is now", async (t) => {
  const { folder } = await runWith(t, lineOf("a", 1));
  const log = new LogBuilder({ labels: { split: "held-out" } });
  const write = () =>
    writeFile(join(folder, "sessions", "seslive.jsonl"), log.entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  await write();
  const turns = async () => (await openIndex(folder)).sessions.map(({ figures }) => [figures?.turns, figures?.labels.split]);
  assert.deepEqual(await turns(), [[0, "held-out"]]);
  log.call({ messages: [user("hi")] });
  await write();
  assert.deepEqual(await turns(), [[1, "held-out"]]);
  await writeFile(join(folder, "sessions", "seslive.jsonl"), "no log\n");
  assert.match((await openIndex(folder)).sessions[0]?.damage ?? "", /session seslive is left out/);
  await rm(join(folder, "sessions", "seslive.jsonl"));
  assert.deepEqual(await turns(), []);
});

test("an index of an older layout is made anew", async (t) => {
  const { folder } = await runWith(t, lineOf("a", 1));
  const whole = await openIndex(folder);
  await using file = await open(join(folder, "index.json"), "w");
  await writeIndexLines(file, { ...whole, layout: indexLayout - 1, trajectories: [] });
  assert.deepEqual(await openIndex(folder), whole);
});

test("a row says the seconds of each phase, the verdict's words, and why tokens are not trained", async (t) => {
  const { folder } = await runWith(t, lineOf("a", 0));
  const failed = ["one", "two", "three", "four"].map((name) => ({ name, outcome: "failed" }));
  const graded = { ...verdict, evidence: { required: 9, failed_count: 4, failed } };
  const unmeasured = {
    ...verdict,
    reward: null,
    status: "grader_error",
    error: { code: "grader_error", message: "x".repeat(999), status: null },
  };
  const times = { queued: 1000, init: 3000, run: 7000, post: 20_000, done: 21_500 };
  const lines = [
    { ...rollout, rollout_id: "a", session_id: "sesa", verdict: graded, times },
    { ...rollout, rollout_id: "b", verdict: unmeasured, times: { queued: 1000, done: 2000 } },
    { ...rollout, rollout_id: "c", verdict: graded, times: { ...times, teach: 21_500, done: 24_000 } },
  ];
  await writeFile(join(folder, "rollouts.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const { records, trajectories } = await openIndex(folder);
  const [a, b, c] = records.map(({ figures }) => figures);
  assert.deepEqual(a?.phases, { queue: 2, init: 4, run: 13, grade: 1.5, teach: null });
  assert.deepEqual(b?.phases, { queue: 1, init: null, run: null, grade: null, teach: null });
  assert.deepEqual([c?.phases, c?.seconds], [{ ...a?.phases, teach: 2.5 }, a?.seconds]);
  assert.deepEqual(a?.verdict, { status: "graded", required: 9, failed_count: 4, failed: ["one", "two", "three"] });
  assert.deepEqual([a?.why_null, b?.why_null?.length], [null, 300]);
  const golden = goldenTrajectory();
  const [row] = trajectories;
  assert.deepEqual(row?.figures.excluded, golden.fidelity.excluded);
  assert.deepEqual([row?.figures.matches, row?.figures.causes], [golden.fidelity.matches, golden.fidelity.causes]);
  assert.equal(row?.figures.largest_prompt, Math.max(...golden.calls.map(({ prompt_length }) => prompt_length ?? 0)));
  assert.deepEqual(row?.figures.agents, ["main", "helper"]);
});

test("rows of an index that was read share their common values, and these equal the written ones", async (t) => {
  const { folder } = await runWith(t, lineOf("a", 1), lineOf("b", 0), lineOf("c", 1));
  const made = await openIndex(folder);
  const read = await openIndex(folder);
  assert.deepEqual(read, made);
  const [one, other] = read.trajectories.map(({ figures }) => figures);
  assert.equal(one?.matches, other?.matches);
  assert.equal(one?.fidelity.tokens.excluded, other?.fidelity.tokens.excluded);
  assert.throws(() => Object.assign(one?.matches ?? {}, { exact: 9 }), /read only|not extensible/);
  const lines = (await readFile(join(folder, "index.json"), "utf8")).split("\n");
  const shared = lines.filter((line) => line.startsWith('["shared"'));
  assert.equal(new Set(shared).size, shared.length, "no value stands there twice");
});
