/**
 * verl and SkyRL make batches of our rows by their own code. These have the experts of each token at that token. So do the fields
 * that we write for trainers in no registry. With a checkout, such a trainer's own code reads them too:
 *
 *     ALIDADE_PRIME_RL=~/prime-rl ALIDADE_MILES=~/miles npm test -- consumers/routing
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { exporterNamed } from "../../../exporters/registry.ts";
import { FlatRow } from "../../../reconstruct/index.ts";
import { expertsAt } from "../../fakes/engines/npy.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { exported } from "../../fakes/records/exported.ts";
import { goldenSibling, goldenTrajectory } from "../../fakes/records/golden-session.ts";
import { routed } from "../../fakes/records/routed.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

const scratch = scratchFolder("consumer-routing");
const formats = ["flat", "verl", "skyrl", "slime", "miles", "prime-rl", "nemo-rl"];

/** `told`: the experts of the tokens, by trainer and row, from the first token on. */
type Answer = {
  told: Record<string, number[][][][]>;
  refused: Record<string, string>;
  left_out: string[];
  read_by: string[];
  logged: string[];
};

test("trainers get each token's experts at that token, and rows that lack some are refused", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const files = new Map<string, Buffer>();
  const trajectories = [routed(goldenTrajectory(), files), routed(goldenSibling(), files)];
  const media = join(scratch, "media");
  await mkdir(media);
  for (const [name, bytes] of files) await writeFile(join(media, name), bytes);
  const wanted = new Map<string, number[][][][]>();
  for (const format of formats) {
    const { bytes, rows } = await exported(exporterNamed(format), trajectories);
    await writeFile(join(scratch, `${format}.jsonl`), bytes);
    if (format === "flat")
      wanted.set(
        "all",
        rows.map((row) => told(FlatRow.parse(row))),
      );
  }
  const without = await exported(exporterNamed("verl"), [goldenTrajectory()]);
  await writeFile(join(scratch, "without.jsonl"), without.bytes);
  const python = join(consumersPlace(), "venv/bin/python");
  const { stdout } = await promisify(execFile)(python, ["-W", "ignore", join(consumerScripts, "routing.py"), scratch], {
    env: { ...process.env, OMP_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1" },
    signal: t.signal,
  });
  const answer = JSON.parse(stdout) as Answer;
  t.diagnostic(`read by trainers' own code: ${answer.read_by.join(", ")}`);
  for (const one of answer.left_out) t.diagnostic(one);
  const all = wanted.get("all") ?? [];
  assert.equal(all.length, 4);
  // One row a rollout, which ends at its last trained token.
  const longest = [all[1], all[3]];
  const expected: Record<string, unknown> = {
    ...{ verl_loop: all, verl_queue: all, verl_batch: all, skyrl: all, slime: all, miles: all, prime_rl: all },
    ...{ nemo_rl: longest, slime_live: all, verl_live: all, skyrl_live: all },
  };
  assert.deepEqual(Object.keys(answer.told).sort(), Object.keys(expected).sort());
  for (const [trainer, rows] of Object.entries(answer.told)) assert.deepEqual(rows, expected[trainer], trainer);
  assert.match(
    answer.refused.hole ?? "",
    /^row 1 trains tokens whose experts are not on record \(alidade fidelity says why\): leave the row out/,
  );
  assert.match(answer.refused.none ?? "", /^row 0 trains tokens whose experts are not on record/);
  assert.equal(answer.refused.live, "ABORTED True");
  for (const hook of ["verl_never", "verl_anymore", "slime_never", "skyrl_never"])
    assert.match(
      answer.refused[hook] ?? "",
      /^no token of the rollout r-1 has experts on record.*: switch replay off, or sample with/,
      hook,
    );
  assert.match(answer.refused.absent ?? "", /elsewhere has no file [0-9a-f]{64}: name the folder media/);
  assert.match(answer.refused.nowhere ?? "", /^the row names the file [0-9a-f]{64}: say in which folder/);
  assert.match(answer.refused.late ?? "", /has no file 0{64}/);
  const notes = answer.logged.map((note) => note.replace(/:.*/, ""));
  assert.deepEqual(notes, ["the rollout r-1 is left out", "the rollout r-1 has no rows", "the rollout r-1 is left out"]);
});

function told({ token_ids }: FlatRow): number[][][] {
  return token_ids.slice(0, -1).map(expertsAt);
}
