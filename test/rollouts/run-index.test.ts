import assert from "node:assert/strict";
import { appendFile, chmod, mkdir, mkdtemp, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openIndex } from "../../rollouts/run-index.ts";
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
