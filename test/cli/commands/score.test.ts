/** `alidade score`: another model's logprobs of what a run sampled stand beside the recorded ones, and nothing else changes. */
import assert from "node:assert/strict";
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { RolloutRecord } from "../../../base/schema/rollout.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { startPracticeEngine } from "../../../practice/start.ts";
import { TokenPaths } from "../../../reconstruct/index.ts";
import { startCountingTeacher } from "../../fakes/engines/counting-teacher.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf, startCli } from "../../fakes/processes/cli.ts";
import { linesOf } from "../../fakes/records/lines-of.ts";
import { runFile, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("score");

/** Two turns of at most eight tokens, nothing forced. */
const harness = `
const messages = [{ role: "user", content: process.argv[2] }];
for (const more of ["go on", null]) {
  const response = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
    body: JSON.stringify({ model: process.env.ALIDADE_MODEL ?? "practice", max_tokens: 8, messages }),
  });
  const { choices } = await response.json();
  messages.push({ role: "assistant", content: choices[0].message.content ?? "" }, { role: "user", content: more });
}
`;

type Said = {
  teacher: { model: string; url: string; weight_version: string | null };
  scored: {
    task_id: string;
    sample_index: number;
    revision: number;
    sampled_tokens: number;
    scored_tokens: number;
    unscored: Record<string, number>;
    mean_gap: number | null;
  }[];
  already_scored: unknown[];
  not_scored: { task_id: string; reason: string }[];
};

let made: Promise<string> | null = null;

/** A copy of one run, which is made once. */
async function ran(name: string): Promise<string> {
  made ??= makeRun();
  const path = join(scratch, name);
  await cp(await made, path, { recursive: true });
  return path;
}

/** Two tasks of two rollouts, sampled by the practice engine of the seed 10, which is gone afterwards. */
async function makeRun(): Promise<string> {
  const folder = join(scratch, "made");
  await mkdir(folder);
  for (const id of ["a", "b"]) await writeTask(folder, id);
  await writeFile(join(folder, "harness.mjs"), harness);
  await using engine = await startPracticeEngine({ seed: 10 });
  const command = ["node", join(folder, "harness.mjs"), "{instruction}"];
  await writeFile(join(folder, "run.yaml"), runFile({ engine: engine.url, command, tasks: ["a", "b"] }));
  const result = await cli(["run", "-c", join(folder, "run.yaml"), "-o", join(folder, "runs"), "--json"]);
  const { run } = jsonOf<{ run: string }>(result);
  assert.equal((await trajectoriesOf(run)).length, 4, result.stderr);
  return run;
}

const trajectoriesOf = (path: string) => linesOf(join(path, "trajectories.jsonl"), Trajectory);
const sampledOf = ({ nodes }: Trajectory) => nodes.filter(({ kind }) => kind === "sampled");
const journalsOf = async (path: string) => (await readdir(path)).filter((name) => name.startsWith("score-"));

/** As it was before any teacher. */
function withoutTeacher({ teacher: _, nodes, ...rest }: Trajectory) {
  return { ...rest, nodes: nodes.map(({ teacher: _, ...node }) => node) };
}

test("a teacher's logprobs stand beside the recorded ones as a new revision, and nothing else of the run changes", async () => {
  const path = await ran("beside");
  const before = await trajectoriesOf(path);
  await using teacher = await startPracticeEngine({ seed: 11 });
  const result = await cli(["score", path, "--engine", teacher.url, "--json"]);
  assert.equal(result.code, 0, result.stderr);
  const said = jsonOf<Said>(result);
  assert.deepEqual([said.scored.length, said.not_scored, said.already_scored], [4, [], []]);
  for (const one of said.scored) {
    assert.deepEqual([one.scored_tokens, one.unscored, one.revision], [one.sampled_tokens, {}, 2]);
    assert.ok(one.sampled_tokens > 2 && typeof one.mean_gap === "number" && Math.abs(one.mean_gap) > 1e-6, JSON.stringify(one));
  }
  const after = await trajectoriesOf(path);
  assert.deepEqual(after.map(withoutTeacher), before.map(withoutTeacher));
  for (const trajectory of after) {
    assert.equal(trajectory.teacher?.model, "practice");
    assert.equal(trajectory.teacher.url, teacher.url);
    assert.equal(trajectory.teacher.tokenizer, "same");
    const [node] = sampledOf(trajectory);
    assert.ok(node?.teacher);
    assert.deepEqual(node.teacher, { logprobs: await scoredBy(teacher.url, trajectory, node.node_id), reason: null });
  }
  const records = (await linesOf(join(path, "rollouts.jsonl"), RolloutRecord)).filter(({ state }) => state === "done");
  assert.deepEqual(records.map(({ revision }) => revision).sort(), [1, 1, 1, 1, 2, 2, 2, 2]);
  assert.deepEqual(await journalsOf(path), []);

  const again = jsonOf<Said>(await cli(["score", path, "--engine", teacher.url, "--json"]));
  assert.deepEqual([again.scored.length, again.already_scored.length], [0, 4]);
  assert.match((await cli(["show", "a/0", "--run", path])).stdout, /teacher +practice at http.*: \d+ tokens scored, mean gap/);
  assert.match((await cli(["fidelity", "--run", path])).stdout, /teacher: practice scored (\d+) of \1 sampled tokens of 4 rollouts; /);
});

/** What the server itself says of the node's tokens, in their context. */
async function scoredBy(url: string, trajectory: Trajectory, nodeId: string): Promise<unknown[]> {
  const nodes = new TokenPaths(trajectory).nodes(nodeId);
  const prompt = nodes.flatMap(({ token_ids }) => token_ids);
  const first = prompt.length - (nodes.at(-1)?.token_ids.length ?? 0);
  const entries = await promptLogprobs(url, prompt, 0);
  return prompt.slice(first).map((id, at) => entries[first + at]?.[String(id)]?.logprob);
}

type Entry = { logprob: number; rank: number };

async function promptLogprobs(url: string, prompt: number[], top: number): Promise<Record<string, Entry>[]> {
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "practice", prompt, max_tokens: 1, prompt_logprobs: top }),
  });
  const { choices } = (await response.json()) as { choices: { prompt_logprobs: Record<string, Entry>[] }[] };
  return choices[0]?.prompt_logprobs ?? [];
}

test("the policy as its own teacher gives what was recorded, to the last bit; a second teacher takes its place", async () => {
  const path = await ran("itself");
  await using policy = await startPracticeEngine({ seed: 10 });
  const own = jsonOf<Said>(await cli(["score", path, "--engine", policy.url, "--json"]));
  assert.deepEqual(
    own.scored.map(({ mean_gap }) => mean_gap),
    [0, 0, 0, 0],
  );
  for (const node of (await trajectoriesOf(path)).flatMap(sampledOf)) assert.deepEqual(node.teacher?.logprobs, node.logprobs);
  await using other = await startPracticeEngine({ seed: 11, model: "larger" });
  const result = await cli(["score", path, "a/1", "--engine", other.url]);
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stderr, /its logprobs take the place of those of practice/);
  assert.match(result.stdout, /a\/1 .* 3$/m);
  const models = (await trajectoriesOf(path)).map(({ task, group, teacher }) => `${task.id}/${group.sample_index} ${teacher?.model}`);
  assert.deepEqual(models.sort(), ["a/0 practice", "a/1 larger", "b/0 practice", "b/1 practice"]);
});

test("after a kill -9 in the middle the same command goes on, and no rollout is scored twice", { timeout: 300_000 }, async () => {
  const path = await ran("killed");
  await using teacher = await startCountingTeacher({ seed: 11 });
  const held = teacher.hold(3);
  const flags = ["score", path, "--engine", teacher.url, "--concurrency", "1"];
  {
    await using running = startCli(flags);
    await held;
    running.child.kill("SIGKILL");
    await running.ended;
  }
  assert.equal((await journalsOf(path)).length, 1);
  assert.deepEqual(
    (await trajectoriesOf(path)).map((one) => one.teacher),
    [undefined, undefined, undefined, undefined],
    "nothing of the run changes before all are scored",
  );
  const result = await cli([...flags, "--json"]);
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stderr, /an earlier call had scored 2 of them/);
  assert.equal(jsonOf<Said>(result).scored.length, 4);
  // The third was asked for twice, for the first answer never came.
  assert.equal(teacher.scored.length, 5);
  assert.deepEqual(teacher.scored[2], teacher.scored[3]);
  assert.equal(new Set(teacher.scored.map(String)).size, 4);
  for (const node of (await trajectoriesOf(path)).flatMap(sampledOf)) assert.equal(node.teacher?.logprobs.length, node.token_ids.length);
  assert.deepEqual(await journalsOf(path), []);
});

test("a teacher with another tokenizer is refused in one sentence before anything is scored", async () => {
  const path = await ran("tokenizer");
  const file = join(path, "trajectories.jsonl");
  const text = await readFile(file, "utf8");
  // Only the last rollout has another one: the others must not be scored either.
  const at = text.lastIndexOf('"tokenizer":"');
  const other = `${text.slice(0, at)}"tokenizer":"of-others-${text.slice(at + '"tokenizer":"'.length)}`;
  await writeFile(file, other);
  await using teacher = await startCountingTeacher({ seed: 11 });
  const result = await cli(["score", path, "--engine", teacher.url]);
  assert.equal(result.code, 2);
  assert.match(
    result.stderr,
    /practice at http\S+ has another tokenizer than practice that sampled [ab]\/[01], so the same ids are other words to it/,
  );
  assert.deepEqual(teacher.scored, []);
  assert.equal(await readFile(file, "utf8"), other);
  // Where it is not known it is scored, and the record says so.
  await writeFile(file, text.replaceAll(/"tokenizer":"[^"]*"/g, '"tokenizer":null'));
  const unknown = await cli(["score", path, "--engine", teacher.url]);
  assert.match(unknown.stderr, /of 4 rollouts it is unknown whether the teacher has their tokenizer/);
  assert.ok((await trajectoriesOf(path)).every((one) => one.teacher?.tokenizer === "unknown"));
});

test("tokens behind the teacher's longest context are null with the reason, and those before it are scored", async () => {
  const path = await ran("short");
  const [first] = await trajectoriesOf(path);
  assert.ok(first);
  const [turn] = sampledOf(first);
  const length = new TokenPaths(first).tokens(turn?.node_id ?? "").length;
  await using teacher = await startPracticeEngine({ seed: 11, maxModelLen: length });
  const result = await cli(["score", path, first.rollout_id ?? "", "--engine", teacher.url, "--json"]);
  assert.equal(result.code, 0, result.stderr);
  const [one] = jsonOf<Said>(result).scored;
  assert.ok(one && turn);
  // The server samples one token behind what it scores.
  assert.equal(one.scored_tokens, turn.token_ids.length - 1);
  assert.deepEqual(one.unscored, { over_context: one.sampled_tokens - one.scored_tokens });
  const [scored] = await trajectoriesOf(path);
  assert.equal(scored && sampledOf(scored)[0]?.teacher?.logprobs.at(-1), null);
  assert.match(
    (await cli(["fidelity", "--run", path])).stdout,
    /\d+ not scored: over context \(It stands behind the teacher's longest context: /,
  );
});

test("with --top-k the teacher's likeliest tokens are kept as the engine ranks them, and fewer need no second scoring", async () => {
  const path = await ran("top");
  await using teacher = await startCountingTeacher({ seed: 11 });
  const asked = (top: number) => cli(["score", path, "a/0", "--engine", teacher.url, "--top-k", String(top), "--json"]);
  assert.equal(jsonOf<Said>(await asked(3)).scored.length, 1);
  const trajectory = (await trajectoriesOf(path)).find((one) => one.teacher !== undefined);
  assert.equal(trajectory?.teacher?.top_k, 3);
  for (const { node_id, token_ids, teacher: score } of sampledOf(trajectory)) {
    const nodes = new TokenPaths(trajectory).tokens(node_id);
    const ranked = (await promptLogprobs(teacher.url, nodes, 3)).slice(-token_ids.length).map((entries) =>
      Object.entries(entries)
        .filter(([, { rank }]) => rank <= 3)
        .sort(([, one], [, other]) => one.rank - other.rank),
    );
    assert.deepEqual(score?.top, {
      ids: ranked.map((entries) => entries.map(([id]) => Number(id))),
      logprobs: ranked.map((entries) => entries.map(([, { logprob }]) => logprob)),
    });
  }
  assert.equal(jsonOf<Said>(await asked(2)).already_scored.length, 1);
  assert.equal(jsonOf<Said>(await asked(4)).scored.length, 1);
  const rows = (await cli(["export", "--run", path, "--format", "flat"])).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);
  const row = rows.find((one) => one.teacher_top_ids !== undefined);
  assert.ok(row?.teacher_top_ids && rows.length === 4);
  assert.deepEqual(
    row.teacher_top_ids.map(({ length }) => length),
    row.loss_mask.map((mask) => (mask === 1 ? 4 : 0)),
  );
});

type Row = { teacher_top_ids?: number[][]; loss_mask: number[] };

test("what cannot be is refused in one sentence with what to do", async () => {
  const path = await ran("refused");
  await using teacher = await startPracticeEngine({ seed: 11 });
  const cases: [string[], RegExp][] = [
    [[path, "--engine", teacher.url, "--kind", "openai-compatible"], /cannot score given tokens: take a teacher at vLLM or SGLang/],
    [[path, "--engine", teacher.url, "--model", "huge"], /serves no model "huge": name one with --model: practice/],
    [[path, "c/0", "--engine", teacher.url], /holds no rollout "c\/0"/],
    [[path], /give --engine http/],
    [[join(scratch, "nowhere"), "--engine", teacher.url], /there is no folder/],
    [[path, "--engine", teacher.url, "--top-k", "65"], /Give at most 64/],
    [[path, "--engine", teacher.url, "--concurrency", "0"], /Give a whole number of 1 or more/],
  ];
  for (const [flags, said] of cases) {
    const { code, stderr } = await cli(["score", ...flags]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, said);
  }
  assert.ok((await trajectoriesOf(path)).every((one) => one.teacher === undefined));
});
