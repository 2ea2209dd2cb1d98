/** What the loaders in Python do without any trainer; with the trainers' own code: `test/interop/consumers/`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { exporterNamed } from "../../exporters/registry.ts";
import { bytesOf } from "../fakes/engines/npy.ts";
import { exported } from "../fakes/records/exported.ts";
import { goldenSibling, goldenTrajectory } from "../fakes/records/golden-session.ts";
import { taught } from "../fakes/records/taught.ts";
import { need } from "../needs.ts";

const clients = join(import.meta.dirname, "../../clients/python");

/** What the script prints as JSON; `sys.argv[1]` is the folder of the given files. */
async function python(script: string, files: Record<string, Buffer> = {}): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-loaders-"));
  try {
    for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes);
    const setUp = `import json, sys; sys.dont_write_bytecode = True; sys.path.insert(0, ${JSON.stringify(clients)})\n`;
    const { stdout } = await promisify(execFile)("python3", ["-c", setUp + script, folder]);
    return JSON.parse(stdout) as unknown;
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("every loader of the list, the client and its examples are Python of the oldest version that is asked for", async (t) => {
  if (!(await need(t, "python"))) return;
  const script = `
import ast, glob
root = ${JSON.stringify(clients)}
ours = [name for part in ("alidade", "alidade/loaders", "examples") for name in glob.glob(f"{root}/{part}/*.py")]
assert len(ours) >= 18, ours
for name in ours: ast.parse(open(name).read(), feature_version=(3, 9))
print(json.dumps("parsed"))`;
  assert.equal(await python(script), "parsed");
});

/** What slime has of rows, as far as rewards go. */
const slimeSamples = `
from types import SimpleNamespace
from alidade import read
from alidade.loaders.slime import post_process_rewards
class Sample(SimpleNamespace):
    def get_reward_value(self, args): return self.reward
samples = [Sample(**row) for row in read(sys.argv[1] + "/slime.jsonl")]`;

test("verl: a teacher's logprobs stand where verl's own teacher puts them, and half a batch or a missing one is refused", async (t) => {
  if (!(await need(t, "python"))) return;
  const rowsOf = async (...trajectories: Trajectory[]) => (await exported(exporterNamed("verl"), trajectories)).bytes;
  const scored = await rowsOf(taught(goldenTrajectory()), taught(goldenSibling()));
  for (const line of scored.toString("utf8").trim().split("\n")) {
    const row = JSON.parse(line) as Record<"prompts" | "responses" | "response_mask", number[]> &
      Record<"teacher_ids" | "teacher_logprobs", number[][]>;
    const ids = [...row.prompts, ...row.responses];
    const mask = [...row.prompts.map(() => 0), ...row.response_mask];
    assert.deepEqual(
      row.teacher_ids,
      [...ids.slice(1), 0].map((id) => [id]),
    );
    const wanted = ids.map((id, at) => (mask[at] === 1 ? -id / 1024 : 0)).slice(1);
    assert.deepEqual(
      row.teacher_logprobs,
      [...wanted, 0].map((logprob) => [logprob]),
    );
  }
  const missing = taught(goldenTrajectory());
  for (const { teacher } of missing.nodes) teacher?.logprobs.fill(null);
  const script = `
from alidade import read
from alidade.loaders.verl import _taught
def say(name):
    try: return _taught(list(read(f"{sys.argv[1]}/{name}.jsonl")))
    except ValueError as error: return str(error)
print(json.dumps([say(name) for name in ("scored", "plain", "half", "missing")]))`;
  const files = {
    "scored.jsonl": scored,
    "plain.jsonl": await rowsOf(goldenTrajectory()),
    "half.jsonl": await rowsOf(taught(goldenTrajectory()), goldenSibling()),
    "missing.jsonl": await rowsOf(missing),
  };
  const [all, none, half, without] = (await python(script, files)) as [boolean, boolean, string, string];
  assert.deepEqual([all, none], [true, false]);
  assert.match(half, /^row 3: some rows have teacher_logprobs and others have not: score the whole run/);
  assert.match(without, /^row 0: the teacher gave \d+ of its trained tokens no logprob/);
});

test("slime: a rollout of three samples is one entry of its group's baseline", async (t) => {
  if (!(await need(t, "python"))) return;
  const { bytes } = await exported(exporterNamed("slime"), [goldenTrajectory(), goldenSibling()]);
  const script = `${slimeSamples}
plain = post_process_rewards(SimpleNamespace(grpo_std_normalization=False), samples)
print(json.dumps([plain, post_process_rewards(SimpleNamespace(), samples)[1]]))`;
  const [[raw, centred], normalised] = (await python(script, { "slime.jsonl": bytes })) as [[number[], number[]], number[]];
  assert.deepEqual(raw, [1, 1, 1, 0]);
  // Counted by samples the mean would be 0.75.
  assert.deepEqual(centred, [0.5, 0.5, 0.5, -0.5]);
  const one = 0.5 / (Math.SQRT1_2 + 1e-6);
  for (const [at, want] of [one, one, one, -one].entries()) assert.ok(Math.abs((normalised[at] ?? 0) - want) < 1e-12);
});

test("slime: rewards that it would not normalise by itself stay as they are", async (t) => {
  if (!(await need(t, "python"))) return;
  const { bytes } = await exported(exporterNamed("slime"), [goldenTrajectory(), goldenSibling()]);
  const script = `${slimeSamples}
settings = [{"advantage_estimator": "ppo"}, {"rewards_normalization": False}, {"advantage_estimator": "reinforce_plus_plus_baseline"}]
given = {"advantage_estimator": "grpo", "rewards_normalization": True, "grpo_std_normalization": True}
print(json.dumps([post_process_rewards(SimpleNamespace(**{**given, **each}), samples)[1] for each in settings]))`;
  const whole = [1, 1, 1, 0];
  // The last one centres, and divides by no deviation.
  assert.deepEqual(await python(script, { "slime.jsonl": bytes }), [whole, whole, [0.5, 0.5, 0.5, -0.5]]);
});

test("TRL: each prompt gets its own group's rows, in order, and again in the next epoch", async (t) => {
  if (!(await need(t, "python"))) return;
  const { bytes } = await exported(exporterNamed("trl-grpo"), [goldenTrajectory(), goldenSibling()]);
  const script = `
from alidade.loaders.trl import GrpoRows
rows = GrpoRows(sys.argv[1] + "/grpo.jsonl")
first, second = (rows.rollout_func(["group 0", "group 0"], None) for _ in range(2))
print(json.dumps([rows.num_generations, first["alidade_reward"], [len(ids) for ids in first["completion_ids"]], first == second]))`;
  assert.deepEqual(await python(script, { "grpo.jsonl": bytes }), [2, [1, 0], [20, 2], true]);
});

test("TRL: logprobs are no whole numbers, of which it would make those of the whole batch", async (t) => {
  if (!(await need(t, "python"))) return;
  const hot = goldenTrajectory();
  for (const { sampling } of hot.calls) sampling.temperature = 0.5;
  const { bytes } = await exported(exporterNamed("trl-grpo"), [hot, goldenSibling()]);
  const script = `
from types import SimpleNamespace as Of
from alidade import read
from alidade.loaders.trl import GrpoRows
from alidade.trl import _rows_of
file = sys.argv[1] + "/grpo.jsonl"
rows = list(read(file))
live = Of(rows=rows, results=[{"rollout_id": row["rollout_id"], "policies": []} for row in rows], pictures=None)
given = [GrpoRows(file).rollout_func(["group 0"] * 2, None)["logprobs"], [row["logprobs"] for row in _rows_of(live, 0)]]
print(json.dumps([[[str(one) for one in logprobs] for logprobs in each] for each in given]))`;
  const logprobs = [["0.0"], ["-7.0", "-7.125"]];
  assert.deepEqual(await python(script, { "grpo.jsonl": bytes }), [logprobs, logprobs]);
});

test("TRL: groups of different sizes are refused with what to do", async (t) => {
  if (!(await need(t, "python"))) return;
  const lines = [0, 1, 0].map((position) => JSON.stringify({ position }));
  const script = `
from alidade.loaders.trl import GrpoRows
try: GrpoRows(sys.argv[1] + "/grpo.jsonl")
except ValueError as error: print(json.dumps(str(error)))`;
  assert.match(
    String(await python(script, { "grpo.jsonl": Buffer.from(`${lines.join("\n")}\n`) })),
    /groups of \[1, 2\] rows; export with --group-size/,
  );
});

test("support: each token gets its own kept tokens, and a file of other tokens or of another form is refused", async (t) => {
  if (!(await need(t, "python"))) return;
  const file = bytesOf([1, 3, 2, 7, 7, 8, 9, 8, 9], "int32");
  const sha256 = hash("sha256", file);
  const part = { sha256, rows: 3 };
  const row = {
    token_ids: [1, 8, 2, 9],
    support: [
      { start: 1, length: 1, row: 1, ...part },
      { start: 3, length: 1, row: 2, ...part },
    ],
  };
  const files = { "row.json": Buffer.from(JSON.stringify(row)), [sha256]: file };
  const script = `
from alidade import support
folder = sys.argv[1]
row = json.load(open(folder + "/row.json"))
told, refused = support.sets(row, folder), []
first = row["support"][0]
for wrong in ({"token_ids": [1, 6, 2, 9]}, {"support": [{**first, "rows": 2}]}, {"support": [{**first, "row": 3}]}, {"support": [{**first, "start": 9}]}):
    try: support.sets({**row, **wrong}, folder)
    except support.SupportError as error: refused.append(str(error).split(" the ")[0])
print(json.dumps([told, refused, support.sets({"token_ids": [1]}, None)]))`;
  assert.deepEqual(await python(script, files), [
    [null, [7, 8, 9], null, [8, 9]],
    ["token 1 is not among", "the file", "the file", "token 9 is not among"].map((one) =>
      one.replace("the file", `the file ${sha256} does not have`),
    ),
    [null],
  ]);
});

test("routing: the experts of a row are put together from its files, and damaged bytes are refused; a token without its own gives none", async (t) => {
  if (!(await need(t, "python"))) return;
  const [first, second] = [bytesOf([1, 2, 3, 4, 5, 6, 7, 8], "uint16"), bytesOf([9, 9, 10, 11, 12, 13], "uint16")];
  const name = (bytes: Buffer) => hash("sha256", bytes);
  const form = { layers: 1, top_k: 2, dtype: "uint16" };
  const row = {
    token_ids: [1, 2, 3, 4, 5, 6],
    routing: [
      { start: 0, length: 3, sha256: name(first), row: 1, ...form },
      { start: 3, length: 2, sha256: name(second), row: 1, ...form },
    ],
  };
  const files = { "row.json": Buffer.from(JSON.stringify(row)), [name(first)]: first, [name(second)]: second };
  const script = `
import base64
from alidade import routing
folder = sys.argv[1]
row = json.load(open(folder + "/row.json"))
told = routing.experts(row, folder)
given = {part["sha256"]: base64.b64encode(open(folder + "/" + part["sha256"], "rb").read()).decode() for part in row["routing"]}
holes = [routing.experts({**row, "routing": parts}, folder) for parts in ([], row["routing"][1:], row["routing"][:1])]
refused = []
for wrong in ({**given, row["routing"][0]["sha256"]: "AAAA"}, {}):
    try: routing.experts(row, wrong)
    except routing.RoutingError as error: refused.append(str(error).split()[2])
print(json.dumps([told.shape, told.tolist(), routing.experts(row, given).tolist() == told.tolist(), holes, refused]))`;
  assert.deepEqual(await python(script, files), [
    [5, 1, 2],
    [[[3, 4]], [[5, 6]], [[7, 8]], [[10, 11]], [[12, 13]]],
    true,
    [null, null, null],
    [name(first), "gave"],
  ]);
});
