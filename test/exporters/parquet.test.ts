/** The flat rows as a table, read back by another library than the one that wrote it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parquetReadObjects } from "hyparquet";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { exporterNamed } from "../../exporters/registry.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { exported } from "../fakes/records/exported.ts";
import { goldenSibling, goldenTrajectory } from "../fakes/records/golden-session.ts";
import { LogBuilder, user } from "../fakes/records/log-builder.ts";

/** What the format holds. The reader has a bigint for a number of 64 bits, and nothing where a list is null. */
async function tableOf(trajectories: Trajectory[]): Promise<unknown> {
  const { bytes } = await exported(exporterNamed("parquet"), trajectories);
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
  const rows = await parquetReadObjects({ file });
  return JSON.parse(JSON.stringify(rows, (_, value: unknown) => (typeof value === "bigint" ? Number(value) : (value ?? null))));
}

/** A table has a column also where no row has a picture. */
const flatOf = async (trajectories: Trajectory[]): Promise<unknown> =>
  (await exported(exporterNamed("flat"), trajectories)).rows.map((row) => ({
    media: null,
    routing: null,
    support: null,
    teacher_logprobs: null,
    teacher_top_ids: null,
    teacher_top_logprobs: null,
    ...(row as object),
  }));

test("the table holds the flat rows, field by field", async () => {
  const golden = [goldenTrajectory(), goldenSibling()];
  assert.deepEqual(await tableOf(golden), await flatOf(golden));
});

test("a number from outside may be as large as it likes: a step, an attempt, a place in a group and its size", async () => {
  for (const number of [2 ** 31, 1_700_000_000_000, Number.MAX_SAFE_INTEGER]) {
    const log = new LogBuilder({ sample_index: number, attempt: number });
    log.call({ messages: [user("hi")], policy: { version: "v", step: number } });
    const large = [reconstruct(log.entries, { status: "graded", reward: 1, group: { size: number } })];
    const flat = await flatOf(large);
    assert.equal(JSON.stringify(flat).split(String(number)).length - 1, 5);
    assert.deepEqual(await tableOf(large), flat);
  }
});

test("a row says of which harness, labels, weights and temperature it is, and how long its session took", async () => {
  const log = new LogBuilder({ labels: { split: "dev" } });
  log.call({ messages: [user("hi")], policy: { version: "v", step: 7 } });
  const trajectory = reconstruct(log.entries, {
    status: "graded",
    reward: 1,
    stop_reason: "exited",
    harness: { name: "pi", version: "1", config_hash: null },
  });
  const [row] = (await tableOf([trajectory])) as Record<string, unknown>[];
  assert.deepEqual(
    [row?.harness, row?.harness_version, row?.policy_version, row?.policy_step, row?.temperature, row?.status, row?.stop_reason],
    ["pi", "1", "v", 7, 1, "graded", "exited"],
  );
  assert.deepEqual(row?.labels, { split: "dev" });
  assert.equal(typeof row?.seconds, "number");
});
