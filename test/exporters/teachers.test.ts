/** Where a teacher's logprobs stand in the rows of each format that has a field for them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { exporterNamed } from "../../exporters/registry.ts";
import { exported } from "../fakes/records/exported.ts";
import { goldenSibling, goldenTrajectory } from "../fakes/records/golden-session.ts";
import { taught, taughtLogprob, taughtTop } from "../fakes/records/taught.ts";

const Numbers = z.array(z.number());

type Row = Record<string, unknown>;
type Wanted = { field: string; read: (row: Row) => { ids: number[]; mask: number[] } };

const numbers = (value: unknown): number[] => Numbers.parse(value);
const Log = z.array(z.looseObject({ role: z.string(), token_ids: Numbers }));

/** The tokens and the mask that the field is aligned with. */
const formats: Record<string, Wanted> = {
  flat: { field: "teacher_logprobs", read: ({ token_ids, loss_mask }) => ({ ids: numbers(token_ids), mask: numbers(loss_mask) }) },
  slime: { field: "teacher_log_probs", read: ofSample },
  miles: { field: "teacher_log_probs", read: ofSample },
  "prime-rl": {
    field: "ref_logprobs",
    read: ({ token_ids, mask }) => ({ ids: numbers(token_ids), mask: z.array(z.boolean()).parse(mask).map(Number) }),
  },
  "nemo-rl": {
    field: "teacher_reference_logprobs",
    read: ({ message_log }) => {
      const log = Log.parse(message_log);
      const mask = log.flatMap(({ role, token_ids }) => token_ids.map(() => (role === "assistant" ? 1 : 0)));
      return { ids: log.flatMap(({ token_ids }) => token_ids), mask };
    },
  },
  tinker: {
    field: "teacher_logprobs",
    read: ({ loss_fn_inputs }) => {
      const { target_tokens, mask } = z.looseObject({ target_tokens: Numbers, mask: Numbers }).parse(loss_fn_inputs);
      return { ids: target_tokens, mask };
    },
  },
};

function ofSample({ tokens, response_length, loss_mask }: Row) {
  return { ids: numbers(tokens).slice(-z.number().parse(response_length)), mask: numbers(loss_mask) };
}

for (const [format, { field, read }] of Object.entries(formats))
  test(`${format}: ${field} belongs to the tokens beside it`, async () => {
    const exporter = exporterNamed(format);
    assert.match(exporter.docs.teacher ?? "", new RegExp(`\`${field}\``));
    const { rows } = await exported(exporter, [taught(goldenTrajectory()), taught(goldenSibling())]);
    assert.ok(rows.length >= 2);
    for (const row of rows) {
      const { ids, mask } = read(row);
      const given = z.array(z.number().nullable()).parse(row[field]);
      assert.equal(given.length, ids.length);
      assert.ok(mask.includes(1));
      // The format of our own tells also what is not trained.
      for (const [at, id] of ids.entries())
        if (mask[at] === 1) assert.equal(given[at], taughtLogprob(id));
        else if (format !== "flat") assert.equal(given[at], 0);
    }
    const plain = await exported(exporter, [goldenTrajectory(), goldenSibling()]);
    assert.deepEqual(
      rows.map(({ [field]: _, ...row }) => row),
      plain.rows,
      "nothing else of a row changes, and without a teacher there is no such field",
    );
  });

test("the likeliest tokens stand at their places: trl-async with the sampled one behind them, verl the same number everywhere", async () => {
  const trajectories = [taught(goldenTrajectory(), { top: true }), taught(goldenSibling(), { top: true })];
  const Lists = z.array(Numbers);
  const trl = await exported(exporterNamed("trl-async"), trajectories);
  for (const row of trl.rows) {
    const [ids, mask] = [numbers(row.input_ids), numbers(row.completion_mask)];
    const trained = <T>(wanted: (id: number) => T[]) => ids.map((id, at) => (mask[at] === 1 ? wanted(id) : []));
    assert.deepEqual(
      Lists.parse(row.teacher_topk_ids),
      trained((id) => [...taughtTop(id).ids, id]),
    );
    assert.deepEqual(
      Lists.parse(row.teacher_topk_logprobs),
      trained((id) => [...taughtTop(id).logprobs, taughtLogprob(id)]),
    );
  }
  const verl = await exported(exporterNamed("verl"), trajectories, { own: { teacher: "top-k" } });
  for (const row of verl.rows) {
    const ids = [...numbers(row.prompts), ...numbers(row.responses)];
    const mask = [...numbers(row.prompts).map(() => 0), ...numbers(row.response_mask)];
    const next = (wanted: (id: number) => number[]) => [...ids.map((id, at) => (mask[at] === 1 ? wanted(id) : [0, 0])).slice(1), [0, 0]];
    assert.deepEqual(
      Lists.parse(row.teacher_ids),
      next((id) => taughtTop(id).ids),
    );
    assert.deepEqual(
      Lists.parse(row.teacher_logprobs),
      next((id) => taughtTop(id).logprobs),
    );
  }
  assert.ok(trl.rows.length > 1 && verl.rows.length > 1);
  const plain = await exported(exporterNamed("verl"), [taught(goldenTrajectory())], { own: { teacher: "top-k" } });
  assert.ok(
    plain.rows.every((row) => row.teacher_ids === undefined),
    "without --top-k there are none",
  );
});

test("a trained token that was not scored is null in every format, and never a number", async () => {
  const missing = taught(goldenTrajectory());
  for (const { teacher } of missing.nodes) teacher?.logprobs.fill(null);
  for (const [format, { field, read }] of Object.entries(formats))
    for (const row of (await exported(exporterNamed(format), [missing, taught(goldenSibling())])).rows.slice(0, 1)) {
      const given = z.array(z.number().nullable()).parse(row[field]);
      for (const [at, each] of read(row).mask.entries()) if (each === 1) assert.equal(given[at], null, format);
    }
});
