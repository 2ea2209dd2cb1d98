/**
 * Which tokens the sampling kept, from the embedded engine to rows that were exported or that a service gave. The recorded logprobs are those of a fresh
 * score of the whole vocabulary, renormalised over the recorded sets.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { ServiceClient } from "../../index.ts";
import { newPolicy, score } from "../../practice/generation.ts";
import { vocabularySize } from "../../practice/tokenizer/vocabulary.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { runFile, writeTask } from "../fakes/rollouts/small-task.ts";
import { serviceOf } from "../fakes/rollouts/taught-place.ts";

const scratch = scratchFolder("practice-support");

const Part = z.object({ sha256: z.string(), rows: z.number(), row: z.number(), start: z.number(), length: z.number() });
const Row = z.looseObject({
  token_ids: z.array(z.number()),
  loss_mask: z.array(z.number()),
  logprobs: z.array(z.number().nullable()),
  support: z.array(Part).default([]),
});
type Row = z.infer<typeof Row>;

/** By the position of the token in the row. */
async function setsOf(row: Row, bytesOf: (sha256: string) => Promise<Buffer>): Promise<Map<number, number[]>> {
  const sets = new Map<number, number[]>();
  for (const { sha256, rows, row: first, start, length } of row.support) {
    const bytes = await bytesOf(sha256);
    const numbers = Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readInt32LE(at * 4));
    let at = rows;
    for (const [index, count] of numbers.slice(0, rows).entries()) {
      if (index >= first && index < first + length) sets.set(start + index - first, numbers.slice(at, at + count));
      at += count;
    }
  }
  return sets;
}

/** The seed of the weights that the command line gives the engine. */
const seed = 10;

const turns = 8;

/** Half of its turns are streamed. */
const harness = `
const messages = [{ role: "user", content: "Count the ways." }];
const headers = { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" };
for (let turn = 0; turn < ${turns}; turn += 1) {
  const body = JSON.stringify({ model: "practice", max_tokens: 12, stream: turn % 2 === 1, messages });
  const response = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST", headers, body });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  const said = turn % 2 === 1
    ? text.split("\\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? "").join("")
    : JSON.parse(text).choices[0].message.content;
  messages.push({ role: "assistant", content: said ?? "" }, { role: "user", content: "Go on." });
}
`;

const cuts = [
  { temperature: 1, top_p: 0.9, top_k: 20 },
  { temperature: 0.7, top_k: 5 },
  { temperature: 1, top_p: 0.2 },
  { temperature: 1.3, min_p: 0.5 },
];

for (const sampling of cuts)
  test(`a run with --engine practice and ${JSON.stringify(sampling)} records sets over which a fresh score is what was recorded`, {
    timeout: 300_000,
  }, async (t) => {
    const folder = join(scratch, String(cuts.indexOf(sampling)));
    await writeTask(folder, "small");
    await writeFile(join(folder, "harness.mjs"), harness);
    const file = join(folder, "run.yaml");
    const command = ["node", join(folder, "harness.mjs")];
    const more = `sampling: ${JSON.stringify(sampling)}\nretries: 0\n`;
    await writeFile(file, runFile({ engine: "practice", command, tasks: ["small"], more }));
    const ran = await cli(["run", "-c", file, "-o", join(folder, "runs"), "--json"]);
    const { run } = jsonOf<{ run: string }>(ran);
    const out = join(folder, "rows.jsonl");
    const flags = ["--format", "flat", "--temperature", String(sampling.temperature), "--out", out];
    const left = await cli(["export", "--run", run, ...flags, "--json"]);
    assert.equal(jsonOf<{ left_out: Record<string, number> }>(left).left_out.truncated_sampling, 2 * turns, left.stderr);
    const exported = await cli(["export", "--run", run, ...flags, "--kept-sets", "train", "--json"]);
    assert.equal(exported.code, 0, exported.stderr);
    const rows = (await readFile(out, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => Row.parse(JSON.parse(line)));
    assert.deepEqual(jsonOf<{ left_out: Record<string, number> }>(exported).left_out, {});
    await assertRenormalised(t, rows, (sha256) => readFile(join(folder, "media", sha256)), sampling.temperature);
  });

test("rows of a service with --engine practice have sets over which a fresh score is what was recorded", {
  timeout: 300_000,
}, async (t) => {
  const folder = join(scratch, "service");
  await writeTask(folder, "small");
  await writeFile(join(folder, "harness.mjs"), harness);
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: "practice", command: ["node", join(folder, "harness.mjs")], tasks: ["small"] }));
  const { url, token } = await serviceOf(t, { file, out: join(folder, "runs") });
  await using client = ServiceClient.at(url, token);
  const run = await client.set("s", { samples: 2, sampling: { temperature: 1, top_p: 0.9, top_k: 20 } });
  await run.submit([{ group_key: "g", task: "small" }]);
  await run.drain();
  const [group] = await Array.fromAsync(run.groups({ kept_sets: "train", signal: t.signal }));
  assert.deepEqual(group?.report?.left_out, {});
  const rows = (group?.rows ?? []).map((row) => Row.parse(row));
  await assertRenormalised(t, rows, async (sha256) => Buffer.from(group?.pictures?.[sha256] ?? "", "base64"), 1);
});

/** Scores the rows again, and renormalises the scores over the sets of the rows. */
async function assertRenormalised(t: TestContext, rows: Row[], bytesOf: (sha256: string) => Promise<Buffer>, temperature: number) {
  const policy = newPolicy({ seed });
  let [worst, without, count, cut] = [0, 0, 0, 0];
  for (const row of rows) {
    const scored = await score(policy, row.token_ids, vocabularySize, t.signal);
    const sets = await setsOf(row, bytesOf);
    for (const [at, id] of row.token_ids.entries()) {
      if (row.loss_mask[at] === 0) continue;
      const [set, recorded] = [sets.get(at), row.logprobs[at]];
      assert.ok(set && typeof recorded === "number");
      assert.ok(set.includes(id));
      const scoreOf = new Map(scored[at]?.top.map(({ id: one, logprob }) => [one, logprob / temperature]));
      const over = (among: Iterable<number>): number =>
        (scoreOf.get(id) ?? Number.NaN) - Math.log([...among].reduce((sum, one) => sum + Math.exp(scoreOf.get(one) ?? Number.NaN), 0));
      worst = Math.max(worst, Math.abs(over(set) - recorded));
      without = Math.max(without, Math.abs(over(scoreOf.keys()) - recorded));
      count++;
      if (set.length > 1) cut++;
    }
  }
  t.diagnostic(
    `${count} tokens, ${cut} with a choice: worst ${worst.toExponential(2)} nats, over the whole vocabulary ${without.toFixed(2)}`,
  );
  assert.ok(cut > 10, `${cut} of ${count} tokens: a set of one token proves nothing`);
  assert.ok(worst <= 1e-6, `${worst}`);
  assert.ok(without > 0.1, `${without}: without the sets it must be another number`);
}
