/** TRL's SFT and DPO trainers, and pyarrow, on files of the golden session. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { exportTrajectories } from "../../../exporters/export-trajectories.ts";
import { exporterNamed } from "../../../exporters/registry.ts";
import { after, helper, main, sibling } from "../../fakes/records/golden-rows.ts";
import { goldenSibling, goldenTrajectory } from "../../fakes/records/golden-session.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

test("TRL trains by SFT and DPO what was sampled, and pyarrow reads the flat rows", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const folder = await mkdtemp(join(tmpdir(), "alidade-tables-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const [format, file] of Object.entries({
    "trl-sft": "sft.jsonl",
    "trl-dpo": "dpo.jsonl",
    flat: "flat.jsonl",
    parquet: "flat.parquet",
  }))
    await exportTrajectories(exporterNamed(format), [goldenTrajectory(), goldenSibling()], createWriteStream(join(folder, file)));
  const python = join(consumersPlace(), "venv/bin/python");
  const { stdout } = await promisify(execFile)(python, ["-W", "ignore", join(consumerScripts, "tables.py"), folder], {
    env: { ...process.env, OMP_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1" },
    signal: t.signal,
  });
  const trained = (row: typeof main): number[] => row.response.filter((_, at) => row.mask[at] === 1);
  assert.deepEqual(JSON.parse(stdout), {
    sft: [sibling, main, helper, after].map(trained),
    dpo: [[17, 18, 19, 20, 21, 22, 2], sibling.response],
    parquet: true,
  });
});
