/** A teacher's logprobs reach the right tokens by the code of verl's and tinker-cookbook's own distillation. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { exporterNamed } from "../../../exporters/registry.ts";
import { exported } from "../../fakes/records/exported.ts";
import { after, helper, main, sibling } from "../../fakes/records/golden-rows.ts";
import { goldenSibling, goldenTrajectory } from "../../fakes/records/golden-session.ts";
import { taught, taughtLogprob } from "../../fakes/records/taught.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

type Answer = {
  trl: { narrow: number[][]; support: number[][]; valid: boolean; none: boolean };
  verl_top: number;
  verl: { response: number[][]; same: number; late: number };
  tinker: number[][];
};

test("the distillation of verl, TRL and tinker-cookbook finds the teacher's logprob at its token", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const folder = await mkdtemp(join(tmpdir(), "alidade-teachers-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const files = ["verl", "tinker"].map((format) => ({ format, file: join(folder, `${format}.jsonl`) }));
  const trajectories = [taught(goldenTrajectory()), taught(goldenSibling())];
  for (const { format, file } of files) await writeFile(file, (await exported(exporterNamed(format), trajectories)).bytes);
  const tops = [taught(goldenTrajectory(), { top: true }), taught(goldenSibling(), { top: true })];
  for (const { format, own } of [
    { format: "trl-async", own: {} },
    { format: "verl", own: { teacher: "top-k" } },
  ]) {
    const file = join(folder, `${format}-top.jsonl`);
    await writeFile(file, (await exported(exporterNamed(format), tops, { own })).bytes);
    files.push({ format, file });
  }
  const python = join(consumersPlace(), "venv/bin/python");
  const paths = files.map(({ file }) => file);
  const { stdout } = await promisify(execFile)(python, ["-W", "ignore", join(consumerScripts, "teachers.py"), ...paths], {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    signal: t.signal,
  });
  const answer = JSON.parse(stdout) as Answer;
  const rows = [helper, main, after, sibling];
  const longest = Math.max(...rows.map(({ response }) => response.length));
  assert.deepEqual(
    answer.verl.response,
    rows.map(({ response, mask }) =>
      Array.from({ length: longest }, (_, at) => (mask[at] === 1 ? taughtLogprob(response[at] ?? 0) : 0) + 0),
    ),
  );
  assert.equal(answer.verl.same, 0);
  assert.ok(answer.verl.late > 0.001, `one token late is only ${answer.verl.late}: the comparison sees nothing`);
  assert.ok(answer.verl_top < 1e-5, `verl's forward KL differs by ${answer.verl_top}`);
  // TRL keeps at each trained token the teacher's likeliest token and the sampled one.
  const trained = rows.flatMap(({ response, mask }) => response.filter((_, at) => mask[at] === 1));
  const pairs = answer.trl.narrow.map((pair, at) => [pair, answer.trl.support[at]]);
  const wanted = trained.map((id) => [
    [id + 1, id],
    [-0.25, taughtLogprob(id)],
  ]);
  assert.deepEqual([pairs, answer.trl.valid, answer.trl.none], [wanted, true, true]);
  // What is added is the teacher's logprob less the recorded one.
  for (const [index, { prompt, response, mask, logprobs }] of rows.entries()) {
    const wanted = [
      ...prompt.slice(1).map(() => 0),
      ...response.map((id, at) => (mask[at] === 1 ? taughtLogprob(id) - (logprobs[at] ?? 0) : 0)),
    ];
    for (const [at, each] of wanted.entries())
      assert.ok(Math.abs(each - (answer.tinker[index]?.[at] ?? Number.NaN)) < 1e-6, `${index} ${at}`);
  }
});
