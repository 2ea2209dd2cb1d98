/**
 * Checks a run and a service with a teacher: results have its logprobs when they are handed over. Without them, only these are missing.
 */
import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { RolloutRecord } from "../../../base/schema/rollout.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { type Faults, startCountingTeacher } from "../../fakes/engines/counting-teacher.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";
import { cli, jsonOf, startCli } from "../../fakes/processes/cli.ts";
import { serviceOf, taughtPlace } from "../../fakes/rollouts/taught-place.ts";

const scratch = scratchFolder("run-teacher");
const placeAt = (t: TestContext, faults: Faults = {}) => taughtPlace(t, scratch, faults);

async function linesOf<T>(file: string, schema: { parse(value: unknown): T }): Promise<T[]> {
  const text = await readFile(file, "utf8");
  return text.split("\n").flatMap((line) => (line === "" ? [] : [schema.parse(JSON.parse(line))]));
}

const trajectoriesOf = (path: string) => linesOf(join(path, "trajectories.jsonl"), Trajectory);
const doneOf = async (path: string) => (await linesOf(join(path, "rollouts.jsonl"), RolloutRecord)).filter(({ state }) => state === "done");
const sampledOf = (trajectories: Trajectory[]) => trajectories.flatMap(({ nodes }) => nodes.filter(({ kind }) => kind === "sampled"));
const runIn = async (out: string) => join(out, (await readdir(out))[0] ?? "");
const withTeacherAt = (url: string, more = "") => `teacher: { engine: "${url}"${more} }\n`;

test("each rollout of a run has what `score` would write, its teacher's time is a phase, and `score` has nothing left", async (t) => {
  const { file, teacher, out } = await placeAt(t);
  const flags = ["--teacher", teacher.url, "--teacher-top-k", "2"];
  const result = await cli(["run", "-c", file, "-o", out, "--json", ...flags]);
  const { run } = jsonOf<{ run: string }>(result);
  const live = await trajectoriesOf(run);
  assert.equal(live.length, 2, result.stderr);
  for (const { teacher: named } of live)
    assert.deepEqual([named?.url, named?.model, named?.tokenizer, named?.top_k], [teacher.url, "practice", "same", 2]);
  for (const { revision, times } of await doneOf(run)) {
    const { post = 0, teach = 0, scored = 0, done = 0 } = times;
    assert.ok(revision === 1 && post > 0 && post <= teach && teach <= scored && scored <= done, JSON.stringify(times));
  }
  const again = ["score", run, "--engine", teacher.url, "--top-k", "2", "--json"];
  assert.equal(jsonOf<{ already_scored: unknown[] }>(await cli(again)).already_scored.length, 2);

  const bare = (one: Trajectory): Trajectory => {
    const { teacher: _, nodes, ...rest } = one;
    return { ...rest, nodes: nodes.map(({ teacher: __, ...node }) => node) };
  };
  await writeFile(join(run, "trajectories.jsonl"), live.map((one) => `${JSON.stringify(bare(one))}\n`).join(""));
  assert.equal((await cli(again)).code, 0);
  assert.deepEqual(
    sampledOf(await trajectoriesOf(run)).map((node) => node.teacher),
    sampledOf(live).map((node) => node.teacher),
  );
});

test("a teacher that fails is asked again, and one that goes on failing leaves nulls, a reason and the reward", async (t) => {
  const { file, teacher, out } = await placeAt(t, { fails: (number) => (number === 2 ? null : 503) });
  await writeFile(
    file,
    `${await readFile(file, "utf8")}concurrency: { run: 1 }\n${withTeacherAt(teacher.url, ", tries: 2, concurrency: 1")}`,
  );
  const result = await cli(["run", "-c", file, "-o", out]);
  const run = await runIn(out);
  const [first, second] = sampledOf(
    (await trajectoriesOf(run)).toSorted((one, other) => (one.teacher?.scored ?? 0) - (other.teacher?.scored ?? 0)),
  );
  assert.ok(first?.teacher?.logprobs.every((logprob) => logprob !== null));
  assert.deepEqual(second?.teacher, { logprobs: second?.token_ids.map(() => null), reason: "not_answered" });
  assert.equal(teacher.scored.length, 4);
  assert.match(result.stderr, /a\/\d has no logprobs of the teacher practice: .*\(asked 2 times\)/);
  const records = await doneOf(run);
  assert.deepEqual(
    records.map(({ verdict, error, attempt }) => [verdict?.reward, error, attempt]),
    [
      [0, null, 1],
      [0, null, 1],
    ],
  );
  assert.deepEqual(records.map(({ times }) => times.scored === undefined).sort(), [false, true]);
  assert.match((await cli(["fidelity", "--run", run])).stdout, /not scored: not answered/);

  const well = await startCountingTeacher({ seed: 11 });
  t.after(() => well[Symbol.asyncDispose]());
  const scored = jsonOf<{ scored: unknown[] }>(await cli(["score", run, "--engine", well.url, "--json"]));
  assert.equal(scored.scored.length, 2);
});

test("a rollout waits for a silent teacher no longer than `seconds`, and a refused one is not asked again", async (t) => {
  const silent = await placeAt(t);
  void silent.teacher.hold(1);
  void silent.teacher.hold(2);
  await writeFile(silent.file, `${await readFile(silent.file, "utf8")}${withTeacherAt(silent.teacher.url, ", seconds: 0.5")}`);
  const late = await cli(["run", "-c", silent.file, "-o", silent.out]);
  assert.match(late.stderr, /has no logprobs of the teacher practice: it took longer than 0\.5 s/);
  const refusing = await placeAt(t, { fails: () => 400 });
  await cli(["run", "-c", refusing.file, "-o", refusing.out, "--teacher", refusing.teacher.url]);
  for (const [{ out }, reason] of [
    [silent, "not_answered"],
    [refusing, "refused"],
  ] as const) {
    const run = await runIn(out);
    assert.deepEqual(
      sampledOf(await trajectoriesOf(run)).map(({ teacher }) => teacher?.reason),
      [reason, reason],
    );
    assert.deepEqual(
      (await doneOf(run)).map(({ verdict }) => verdict?.reward),
      [0, 0],
    );
  }
  assert.equal(refusing.teacher.scored.length, 2);
});

test("a teacher with another tokenizer, without the model, or that is not there ends the run before its first rollout", async (t) => {
  const { file, teacher, out } = await placeAt(t, { hasOtherTokenizer: true });
  const other = await cli(["run", "-c", file, "-o", out, "--teacher", teacher.url]);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /the teacher practice at http\S+ has another tokenizer than the engine vllm .*no rollout was begun/);
  const unknown = await cli(["run", "-c", file, "-o", out, "--teacher", teacher.url, "--teacher-model", "large"]);
  assert.match(unknown.stderr, /serves no model "large": name one with teacher\.model: practice/);
  const nowhere = await cli(["run", "-c", file, "-o", out, "--teacher", "http://127.0.0.1:1"]);
  assert.match(nowhere.stderr, /teacher\.engine: cannot reach the engine at http:\/\/127\.0\.0\.1:1/);
  const wrong = await cli(["run", "-c", file, "-o", out, "--teacher", "127.0.0.1:1"]);
  assert.match(wrong.stderr, /teacher\.engine is "127\.0\.0\.1:1": give an http\(s\) URL/);
  assert.deepEqual(teacher.scored, []);
});

for (const signal of ["SIGKILL", "SIGTERM"] as const)
  test(`a run that gets ${signal} while its teacher is asked goes on, and has each rollout once, scored`, {
    timeout: 300_000,
  }, async (t) => {
    const { file, teacher, out } = await placeAt(t);
    await writeFile(file, `${await readFile(file, "utf8")}${withTeacherAt(teacher.url)}`);
    const held = teacher.hold(2);
    let run = "";
    {
      await using running = startCli(["run", "-c", file, "-o", out, "--log-format", "json"]);
      await held;
      await until(async () => {
        run = await runIn(out);
        return (await doneOf(run)).length === 1;
      });
      running.child.kill(signal);
      await running.ended;
    }
    const result = await cli(["run", "--resume", run, "--json"]);
    assert.equal(jsonOf<{ rollouts: unknown[] }>(result).rollouts.length, 2, result.stderr);
    const trajectories = await trajectoriesOf(run);
    const last = [...new Map(trajectories.map((one) => [one.rollout_id, one])).values()];
    assert.equal(last.length, 2);
    for (const node of sampledOf(last)) assert.ok(node.teacher?.reason === null && node.teacher.logprobs.length === node.token_ids.length);
    assert.equal(teacher.scored.length, 3);
    assert.deepEqual(teacher.scored[1], teacher.scored[2], "that rollout was asked about again, as it was sampled");
  });

test("a service's rollouts have their teacher's logprobs when their results are read, in rows too, and evaluations have none", async (t) => {
  const { file, teacher, out, folder } = await placeAt(t);
  await writeFile(file, `${await readFile(file, "utf8")}${withTeacherAt(teacher.url)}`);
  const { url, token } = await serviceOf(t, { file, out });
  const at = ["run", join(folder, "a"), "--service", out, "-n", "2", "--json"];
  const made = await cli([...at, "-o", join(folder, "followed")]);
  const { run } = jsonOf<{ run: string }>(made);
  const scored = sampledOf(await trajectoriesOf(run));
  assert.equal(scored.length, 2, made.stderr);
  for (const node of scored) assert.ok(node.teacher?.reason === null && node.teacher.logprobs.every((one) => typeof one === "number"));

  const ask = async (path: string) => (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } })).text();
  const { sets } = JSON.parse(await ask("/sets")) as { sets: { set_id: string }[] };
  const lines = (await ask(`/sets/${sets[0]?.set_id}/results?payload=rows&format=flat`)).trim().split("\n");
  for (const line of lines) {
    const { rows, result } = JSON.parse(line) as {
      rows: { teacher_logprobs: (number | null)[]; loss_mask: number[] }[];
      result: { times: Record<string, number> };
    };
    assert.ok((result.times.scored ?? 0) >= (result.times.teach ?? Number.POSITIVE_INFINITY));
    for (const { teacher_logprobs, loss_mask } of rows)
      assert.ok(loss_mask.every((mask, place) => mask === 0 || teacher_logprobs[place] !== null));
  }
  assert.match(await ask("/metrics"), /alidade_teacher_attempts_total\{outcome="scored"\} 2\n/);

  const asked = teacher.scored.length;
  const evaluated = await cli([...at, "--purpose", "eval", "-o", join(folder, "evaluated")]);
  const plain = await trajectoriesOf(jsonOf<{ run: string }>(evaluated).run);
  assert.deepEqual(
    plain.map((one) => one.teacher),
    [undefined, undefined],
    evaluated.stderr,
  );
  assert.equal(teacher.scored.length, asked);
});
