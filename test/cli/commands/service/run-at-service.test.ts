/** `alidade run --service` at a service's listener whose rollouts the test ends itself: what is refused, stopped, cancelled and taken up again. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { main } from "../../../../cli/commands/index.ts";
import { inTerminal } from "../../../../cli/commands/terminal.ts";
import { readRollouts, readTrajectories } from "../../../../rollouts/index.ts";
import { putPacked } from "../../../../service/blobs/index.ts";
import type { Claim } from "../../../../service/ledger/index.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";
import { until } from "../../../fakes/machine/until.ts";
import { type CliResult, cli, jsonOf, terminalSaying } from "../../../fakes/processes/cli.ts";
import { serviceAt, serviceTask } from "../../../fakes/proxies/service-at.ts";
import { attemptResult } from "../../../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../../../fakes/records/golden-session.ts";

const scratch = scratchFolder("run-at-fake-service");
let folders = 0;

type Service = Awaited<ReturnType<typeof serviceAt>>;

/** A service, the file that names it, and two tasks that can be sent. */
async function placeAt(t: TestContext) {
  const place = join(scratch, String(folders++));
  const tasks = join(place, "tasks.jsonl");
  const file = join(place, "service.json");
  await mkdir(place);
  await writeFile(tasks, ["a", "b"].map((task_id) => JSON.stringify({ ...serviceTask, task_id })).join("\n"));
  const start = async (path?: string): Promise<Service> => {
    const service = await serviceAt(t, path === undefined ? {} : { path });
    await writeFile(file, JSON.stringify({ url: service.url, token: "all" }));
    return service;
  };
  const out = join(place, "runs");
  const folder = async (): Promise<string> => join(out, (await readdir(out))[0] ?? "");
  return { place, tasks, file, out, folder, start, service: await start(), args: ["run", tasks, "--service", file, "-o", out] };
}

/** One that may be stopped before its end. */
function running(args: string[], env: Record<string, string> = {}) {
  const stop = new AbortController();
  const terminal = terminalSaying({ stop: stop.signal, env });
  const ended = inTerminal(terminal, () => main(args)).then(
    (): CliResult => ({ code: terminal.exitCode, stdout: terminal.stdout.text, stderr: terminal.stderr.text }),
  );
  return { ended, terminal, stop: () => stop.abort(new Error("stopped by a signal")) };
}

const customer = { session_id: "ses2", model: "user-model", turns: 3, sampled_tokens: 9, end: "stop" as const };

/** Ends so many of what is queued, each with a trajectory of its own, and says which. */
async function finish({ ledger, lease, blobs }: Service, count: number): Promise<string[]> {
  const claims = (await ledger.claim(lease, count)) as Claim[];
  for (const claim of claims) {
    const { set_id, rollout_id, attempt } = claim;
    const trajectory = goldenTrajectory({ reward: 1, rollout_id, attempt });
    const payload = await putPacked(blobs, `${set_id}/${rollout_id}/${attempt}`, trajectory);
    await ledger.finish(claim, attemptResult({ payload, user: customer }));
  }
  return claims.map(({ rollout_id }) => rollout_id);
}

const setOf = async ({ call }: Service) => (await call("GET", "/sets")).body.sets[0];

test("flags and keys say what the set is, and what a set cannot have is refused by name before the service is asked", async (t) => {
  const { service, args, place, tasks, file } = await placeAt(t);
  const config = join(place, "run.yaml");
  await writeFile(config, "samples: 2\nsampling: { temperature: 0.5 }\nbudgets: { max_turns: 3 }\n");
  const more = [
    "-c",
    config,
    "--purpose",
    "eval",
    "--seed",
    "7",
    "--min-tier",
    "T1",
    "--admitted-only",
    "--priority",
    "5",
    "--weight",
    "2",
    "--harness",
    "pi",
    "--retries",
    "0",
  ];
  const asked = running([...args, ...more.slice(0, -2), "--task", "b"]);
  await until(async () => (await setOf(service))?.is_drained === true);
  const { spec, rollouts, key } = await setOf(service);
  const { harness, samples, purpose, seed, sampling, budgets, priority, weight, retries, model, min_tier, admitted_only } = spec;
  assert.deepEqual(
    {
      harness,
      samples,
      purpose,
      seed,
      sampling,
      budgets,
      priority,
      weight,
      retries,
      model,
      min_tier,
      admitted_only,
      queued: rollouts.queued,
    },
    {
      harness: "pi",
      samples: 2,
      purpose: "eval",
      seed: 7,
      sampling: { temperature: 0.5 },
      budgets: { max_turns: 3 },
      priority: 5,
      weight: 2,
      retries: 1,
      model: undefined,
      min_tier: "T1",
      admitted_only: true,
      queued: 2,
    },
  );
  assert.match(key, /^run/);
  asked.stop();
  assert.equal((await asked.ended).code, 130);

  const refused: [more: string[], said: RegExp][] = [
    [["--engine", "http://127.0.0.1:1"], /engine is given \(flag, variable or run file\), and a set of a service has no such field/],
    [["--sandbox", "docker"], /sandbox is given/],
    [["--concurrency", "3"], /concurrency is given/],
    [["--warm", "1"], /warm is given/],
    [["--otel", "env"], /otel is given/],
    [["--harness", "./mine.ts"], /harness is one of your own, and a set names a built-in one/],
    [["--purpose", "live"], /purpose is "live"/],
    [["--seed", "7"], /seed is 7 in a set of the purpose train/],
    [["--weight", "0"], /weight is 0/],
    [["--control-port", "0"], /--control-port does not go with --service/],
    [["--cancel"], /--cancel does not go with --service: --resume FOLDER --cancel/],
  ];
  for (const [more, said] of refused) {
    const { code, stderr } = await cli([...args, ...more]);
    assert.deepEqual([code, said.test(stderr)], [2, true], `${more}: ${stderr}`);
  }
  const alone = ["run", tasks, "--engine", "practice"];
  assert.match((await cli([...alone, "--priority", "1"])).stderr, /--priority goes with --service: it is not given/);
  assert.match((await cli([...alone, "--token-env", "X"])).stderr, /--token-env goes with --service/);
  assert.match((await cli([...alone, "--cancel"])).stderr, /--cancel goes with --resume and the folder of a run over a service/);
  assert.match((await cli(["run", tasks, "--service", "http://me:secret@127.0.0.1:1"])).stderr, /--service has a name or a password in it/);
  assert.match((await cli(["run", tasks, "--service", "ftp://host"])).stderr, /--service is ftp:\/\/host: give an http or https address/);
  assert.match((await cli(["run", tasks, "--service", config])).stderr, /run\.yaml is no service\.json, which has url and token: give a/);
  assert.match((await cli(["run", tasks, "--service", `${place}/none.json`])).stderr, /there is no .*none\.json: give a service's URL/);
  assert.equal((await service.call("GET", "/sets")).body.sets.length, 1);
  assert.equal(JSON.parse(await readFile(file, "utf8")).token, "all");
});

test("a wrong token, one without the role, and a service that is not there end the run at once, and leave no folder", async (t) => {
  const { tasks, out, service, file } = await placeAt(t);
  const at = (token: string) => running(["run", tasks, "--service", service.url, "-o", out, "--token-env", "MINE"], { MINE: token }).ended;
  const wrong = await at("guessed");
  assert.deepEqual([wrong.code, /answers 401: the service wants its token/.test(wrong.stderr)], [2, true], wrong.stderr);
  const reader = await at("read");
  assert.deepEqual([reader.code, /answers 403: this token has not the role submit/.test(reader.stderr)], [2, true], reader.stderr);
  assert.match(
    (await cli(["run", tasks, "--service", service.url, "-o", out])).stderr,
    /--token-env names ALIDADE_SERVICE_TOKEN, which is not set/,
  );
  await service.close();
  const away = await cli(["run", tasks, "--service", file, "-o", out]);
  assert.deepEqual([away.code, /no service answers at/.test(away.stderr)], [2, true], away.stderr);
  await assert.rejects(readdir(out), { code: "ENOENT" });
});

test("a stop keeps what has come and leaves the service at work, a run goes on at another address, and its token is in no file", {
  timeout: 300_000,
}, async (t) => {
  const { service, args, folder, start, out } = await placeAt(t);
  const first = running([...args, "-n", "2"]);
  await until(async () => (await setOf(service))?.is_drained === true);
  await finish(service, 1);
  await until(() => /1 of 4 done/.test(first.terminal.stderr.text));
  first.stop();
  const stopped = await first.ended;
  const run = await folder();
  assert.equal(stopped.code, 130);
  assert.ok(stopped.stderr.includes(`the service goes on: \`alidade run --resume ${run}\` takes what comes`), stopped.stderr);
  assert.equal((await setOf(service)).rollouts.queued, 3);

  await finish(service, 1);
  const second = running(["run", "--resume", run, "--json"]);
  await until(async () => (await readTrajectories(run)).length === 2);
  await service.close();
  await until(() => /no service answers at .*; waiting for it/.test(second.terminal.stderr.text));
  const other = await start(service.path);
  await finish(other, 2);
  const ended = await second.ended;
  assert.equal(ended.code, 1, ended.stderr);
  const records = await readRollouts(run);
  assert.equal(new Set(records.map(({ rollout_id }) => rollout_id)).size, 4);
  // These nodes are of an earlier version: they kept no record.
  assert.ok(records.every(({ verdict, state, summary }) => verdict === null && state === "done" && summary?.turns === 1));
  assert.ok(
    records.every(({ user }) => user?.session_id === "ses2" && user.end === "stop"),
    "the result says who spoke for the user",
  );
  assert.deepEqual(
    (await readTrajectories(run)).map(({ reward }) => reward),
    [1, 1, 1, 1],
  );
  for (const name of ["run.json", "following.json"]) assert.doesNotMatch(await readFile(join(run, name), "utf8"), /"all"/);
  assert.match((await cli(["run", "--resume", run, "--samples", "3"])).stderr, /samples cannot be given as well/);
  assert.match((await cli(["run", "--resume", run, "--engine", "practice"])).stderr, /engine cannot be given as well/);

  const stranger = await serviceAt(t);
  const strange = running(["run", "--resume", run, "--service", stranger.url], { ALIDADE_SERVICE_TOKEN: "all" });
  const { code, stderr } = await strange.ended;
  assert.deepEqual([code, /the service has no set set\w+, which this run follows/.test(stderr)], [2, true], stderr);
  assert.deepEqual((await stranger.call("GET", "/sets")).body.sets, []);
  assert.equal((await readdir(out)).length, 1);
});

test("a line that is served again is not written again, and one whose cursor was not kept is", async (t) => {
  const { service, args, folder } = await placeAt(t);
  const first = running([...args, "-n", "1"]);
  await until(async () => (await setOf(service))?.is_drained === true);
  await finish(service, 2);
  await first.ended;
  const run = await folder();
  const file = join(run, "following.json");
  const following = JSON.parse(await readFile(file, "utf8"));
  await writeFile(file, JSON.stringify({ ...following, cursor: null }));
  // What a kill between a trajectory and its record leaves.
  const lines = (await readFile(join(run, "rollouts.jsonl"), "utf8")).trim().split("\n");
  await writeFile(join(run, "rollouts.jsonl"), `${lines[0]}\n`);
  assert.equal((await running(["run", "--resume", run]).ended).code, 1);
  assert.deepEqual(
    (await readFile(join(run, "rollouts.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).rollout_id),
    lines.map((line) => JSON.parse(line).rollout_id),
  );
  assert.equal((await readTrajectories(run)).length, 2);
  assert.deepEqual(JSON.parse(await readFile(file, "utf8")), following);
  await writeFile(file, "{");
  assert.match((await cli(["run", "--resume", run])).stderr, /following\.json is damaged/);
});

test("--cancel ends what is not over: what had begun has a record, what had not is counted", async (t) => {
  const { service, args, folder } = await placeAt(t);
  const first = running([...args, "-n", "2"]);
  await until(async () => (await setOf(service))?.is_drained === true);
  await finish(service, 1);
  const [begun] = (await service.ledger.claim(service.lease, 1)) as Claim[];
  await until(() => /1 of 4 done/.test(first.terminal.stderr.text));
  first.stop();
  await first.ended;
  const run = await folder();
  const { code, stderr } = await running(["run", "--resume", run, "--cancel"]).ended;
  assert.equal(code, 1, stderr);
  assert.match(stderr, /2 rollouts were cancelled before they began: they have no record/);
  const records = await readRollouts(run);
  const cancelled = records.filter(({ error }) => error !== null);
  assert.deepEqual([records.length, cancelled.length], [2, 1]);
  assert.deepEqual([cancelled[0]?.rollout_id, cancelled[0]?.error?.code, cancelled[0]?.verdict], [begun?.rollout_id, "cancelled", null]);
  assert.equal((await setOf(service)).is_over, true);
  const again = await running(["run", "--resume", run, "--json"]).ended;
  assert.deepEqual([again.code, jsonOf<{ rollouts: unknown[] }>(again).rollouts.length], [1, 2]);
});

test("a run takes the tasks that were passed as often as asked in a set of the same service", async (t) => {
  const { service, args } = await placeAt(t);
  const of = (await service.call("PUT", "/sets/earlier", { samples: 1 })).body.set_id;
  const lines = ["a", "b"].map((task_id) => JSON.stringify({ group_key: task_id, task: { ...serviceTask, task_id } }));
  await service.call("POST", `/sets/${of}/groups`, lines.join("\n"));
  for (const claim of (await service.ledger.claim(service.lease, 2)) as Claim[])
    await service.ledger.finish(claim, attemptResult({ reward: claim.group_key === "a" ? 1 : 0 }));
  const gone = await cli([...args, "--pass-rate", "0..0.5", "--of", `set${"0".repeat(20)}`]);
  assert.match(gone.stderr, /of is "set0+": .*; name the folder of a run, or the id of a set of this service$/m);
  const asked = running([...args, "-n", "1", "--pass-rate", "0..0.5", "--of", of]);
  const made = async () => (await service.call("GET", "/sets")).body.sets.find((set: { key: string }) => set.key !== "earlier");
  await until(async () => (await made())?.is_drained === true);
  assert.equal((await made()).rollouts.queued, 1);
  const [claim] = (await service.ledger.claim(service.lease, 2)) as Claim[];
  assert.equal(claim?.group_key, "b");
  asked.stop();
  const { stderr } = await asked.ended;
  assert.match(stderr, /pass rate 0\.\.0\.5 of set[0-9a-z]+: 1 of 2 tasks are taken, 1 lie outside/);
});
