/** verl's V1 trainers read a queue of their own: our rows stand in it under verl's keys, as verl would have put them. */
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
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

type Answer = { tags: Record<string, unknown>; fields: Record<string, number[][]> };

test("verl's TransferQueue gives our rows back, by verl's own keys", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const folder = await mkdtemp(join(tmpdir(), "alidade-queue-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "verl.jsonl");
  await writeFile(file, (await exported(exporterNamed("verl"), [goldenTrajectory(), goldenSibling()])).bytes);
  const python = join(consumersPlace(), "venv/bin/python");
  const { stdout } = await promisify(execFile)(python, ["-W", "ignore", join(consumerScripts, "verl_queue.py"), file], {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    signal: t.signal,
  });
  const { tags, fields } = JSON.parse(stdout) as Answer;
  const rows = [helper, main, after, sibling];
  const tag = ({ prompt, response }: typeof main, min: number, max: number) => ({
    ...{ status: "success", prompt_len: prompt.length, response_len: response.length, seq_len: prompt.length + response.length },
    ...{ global_steps: 7, min_global_steps: min, max_global_steps: max },
  });
  assert.deepEqual(tags, {
    grp_0_0: tag(helper, 1, 1),
    grp_0_1: tag(main, 1, 2),
    grp_0_2: tag(after, 2, 2),
    grp_1_0: tag(sibling, 1, 1),
    grp: { status: "finished" },
  });
  const whole = rows.map(({ prompt, response }) => [...prompt, ...response]);
  assert.deepEqual(fields, {
    prompts: rows.map(({ prompt }) => prompt),
    responses: rows.map(({ response }) => response),
    response_mask: rows.map(({ mask }) => mask),
    loss_mask: rows.map(({ mask }) => mask),
    input_ids: whole,
    position_ids: whole.map((ids) => ids.map((_, at) => at)),
    // Eighths are exact in float32.
    rollout_log_probs: rows.map(({ logprobs }) => logprobs),
    rm_scores: rows.map(({ response }, at) => response.map((_, place) => (at < 3 && place === response.length - 1 ? 1 : 0))),
  });
});
