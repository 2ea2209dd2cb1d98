import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gunzipSync } from "node:zlib";
import type { WorkLayer } from "../../base/files/layer.ts";
import { Verdict } from "../../base/schema/rollout.ts";
import { Task } from "../../base/schema/task.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { grade } from "../../graders/grade.ts";
import { graders } from "../../graders/registry.ts";
import { graderServers, NamedGraderServer } from "../../graders/remote/grader-servers.ts";
import { remoteTo } from "../../graders/remote.ts";
import { runTasks } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import { keptWork } from "../fakes/kept-work.ts";
import { type AskedServer, graderServer, type ServerReply } from "../fakes/proxies/grader-server.ts";
import { spokenTrajectory } from "../fakes/records/spoken-trajectory.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";

const key = "key-of-the-server-4711";

type Graded = { spec?: object; task?: object; work?: WorkLayer; turns?: Parameters<typeof spokenTrajectory>[0]; signal?: AbortSignal };

/** Grades by a server that answers so; `spec` lies over the usual one. */
async function remoteWith(t: TestContext, reply: (asked: AskedServer, nth: number) => ServerReply) {
  const server = await graderServer(t, reply);
  const servers = graderServers([NamedGraderServer.parse({ url: server.origin, api_key_env: "KEY" })], { KEY: key });
  const known = [...graders.filter(({ name }) => name !== "remote"), remoteTo(servers) as unknown as (typeof graders)[number]];
  const gradeOne = async ({ spec = {}, task = {}, work, turns = [{ text: "It is 42." }], signal = t.signal }: Graded = {}) => {
    const grader = { kind: "remote", url: `${server.origin}/verify`, ...spec };
    const parsed = Task.parse({ task_id: "asked", instruction: "What is it?", labels: { set: "a" }, ...task, grader });
    const verdict = await grade({
      task: parsed,
      work: work ?? (await keptWork([], [{ path: "a.txt", content: Buffer.from("hello"), mode: 0o644 }])),
      trajectory: spokenTrajectory(turns),
      fresh: () => Promise.reject(new Error("a server needs no sandbox")),
      isolation: "container",
      graders: known,
      signal,
    });
    return Verdict.parse(verdict);
  };
  return { ...server, gradeOne, known };
}

const status =
  (code: number, text = "no", headers: Record<string, string> = {}) =>
  (response: ServerResponse) => {
    response.writeHead(code, headers).end(text);
  };
/** Asks again at once. */
const soon = { "retry-after": "0" };

test("a server gets the task, the answer, the trajectory and the work, and its word is the reward", async (t) => {
  const { gradeOne, asked, origin } = await remoteWith(t, () => ({
    reward: 0.5,
    components: { a: 1, b: { value: null } },
    reason: "half",
    more: 1,
  }));
  const data = { expected: [42, "forty-two"] };
  const verdict = await gradeOne({ spec: { sends: ["trajectory", "work"], data } });
  assert.deepEqual([verdict.reward, verdict.status, verdict.tier, verdict.grader], [0.5, "graded", "T1", "remote/alidade"]);
  assert.deepEqual(verdict.components, { a: { value: 1, weight: 0 }, b: { value: null, weight: 0 } });
  const { server, says, tries, remains_possible } = verdict.evidence;
  assert.deepEqual([server, says, tries], [`${origin}/verify`, "half", 1]);
  assert.match(String(remains_possible), /the server's word/);
  const [{ headers, body } = { headers: {}, body: {} }] = asked;
  assert.equal(headers.authorization, `Bearer ${key}`);
  const { trajectory, work, ...rest } = body as { trajectory: object; work: { added: string[]; tar_gz: string } };
  assert.deepEqual(rest, {
    version: 1,
    task: { task_id: "asked", instruction: "What is it?", data_source: null, labels: { set: "a" } },
    data,
    rollout: (({ rollout_id, attempt, session_id }) => ({ rollout_id, attempt, session_id }))(spokenTrajectory([])),
    answer: "It is 42.",
  });
  assert.deepEqual(trajectory, JSON.parse(JSON.stringify(spokenTrajectory([{ text: "It is 42." }]))));
  assert.deepEqual(work.added, ["a.txt"]);
  assert.match(gunzipSync(Buffer.from(work.tar_gz, "base64")).toString("latin1"), /hello/);
  assert.doesNotMatch(JSON.stringify(verdict), new RegExp(key));
});

test("a server is asked about a real rollout: its record, and the whole conversation as one response", { timeout: 300_000 }, async (t) => {
  const { origin, asked, known } = await remoteWith(t, ({ path }) =>
    path === "/own" ? { reward: 1, components: { [key]: 1 } } : { reward: 0.5 },
  );
  const place = await mkdtemp(join(tmpdir(), "alidade-remote-"));
  t.after(() => rm(place, { recursive: true }));
  const small = await writeTask(join(place, "small"), "asked");
  const file = join(small, "task.yaml");
  const [head] = (await readFile(file, "utf8")).split("grader:");
  const part = (name: string, more: object) => ({ name, grader: { kind: "remote", url: `${origin}/${name}`, ...more } });
  const parts = [part("own", { sends: ["trajectory", "work"] }), part("gym", { form: "nemo-gym" })];
  await writeFile(file, `${head}grader: ${JSON.stringify({ kind: "composite", combine: "min", parts })}\n`);
  const does: typeof runTasks = (setup, batch, signal) => runTasks({ ...setup, graders: known }, batch, signal);
  const run = await runner(t, place, { path: join(place, "run"), retries: 0, does });
  const [record] = await run((await pickBackend("process", t.signal)).backend);
  assert.deepEqual([record?.verdict?.reward, record?.verdict?.status], [0.5, "graded"], JSON.stringify(record?.verdict));
  assert.doesNotMatch(JSON.stringify(record), new RegExp(key));
  const [own = {}, gym = {}] = ["/own", "/gym"].map((path) => asked.find((one) => one.path === path)?.body ?? {});
  const trajectory = Trajectory.parse(own.trajectory);
  assert.deepEqual([trajectory.rollout_id, trajectory.reward, own.answer], [record?.rollout_id, null, "done"]);
  assert.deepEqual((own.work as { added: string[] }).added, ["done.txt"]);
  const { input } = gym.responses_create_params as { input: object[] };
  const { output } = gym.response as { output: { type: string }[] };
  assert.match(JSON.stringify(input), /Make done\.txt for asked/);
  assert.deepEqual(
    output.map(({ type }) => type),
    ["function_call", "function_call_output", "message"],
  );
});

test("a server gets no more than its task sends", async (t) => {
  const { gradeOne, asked } = await remoteWith(t, () => ({ reward: 1 }));
  await gradeOne();
  const { trajectory, work = {} } = (asked[0]?.body ?? {}) as { trajectory?: object; work?: object };
  assert.deepEqual([trajectory, Object.keys(work)], [undefined, ["sha256", "no_change", "added", "modified", "deleted"]]);
});

test("NeMo Gym's /verify gets the row and the rollout as one response", async (t) => {
  const { gradeOne, asked } = await remoteWith(t, ({ body }) => ({ ...body, reward: 1, reward_components: { exact: 1 } }));
  const turns = [{ text: "I look", tools: [["bash", '{"command":"ls"}'] as [string, string]] }, { text: "It is \\boxed{B}" }];
  const verdict = await gradeOne({ spec: { form: "nemo-gym", data: { expected_answer: "B" } }, turns });
  assert.deepEqual([verdict.reward, verdict.grader, verdict.components], [1, "remote/nemo-gym", { exact: { value: 1, weight: 0 } }]);
  const { responses_create_params, response, expected_answer } = (asked[0]?.body ?? {}) as Record<string, Record<string, unknown>>;
  assert.deepEqual([Array.isArray(responses_create_params?.input), expected_answer], [true, "B"]);
  const items = response?.output as { type: string; id: string }[];
  assert.deepEqual(
    items.map(({ type }) => type).filter((type) => type !== "message"),
    ["function_call"],
  );
  assert.match(JSON.stringify(items.at(-1)), /It is .*boxed\{B\}/);
  assert.ok(items.every(({ id }) => id !== ""));
});

for (const [title, answers, code, more] of [
  ["has no time, again and again", [status(503, "busy", soon)], "grader_unreachable", /3 tries\) answers 503: busy/],
  ["fails, again and again", [status(500, "boom", soon)], "grader_error", /answers 500: boom/],
  [
    "leads elsewhere",
    [status(307, "", { location: "http://127.0.0.1:1/x" })],
    "task_invalid",
    /leads to http:\/\/127.0.0.1:1\/x, and no redirect/,
  ],
  ["wants another key", [status(401, `no such key ${key}`)], "config_invalid", /answers 401: no such key \[redacted\]; .*api_key_env/],
  ["is another one", [status(404)], "task_invalid", /mend grader.url/],
  ["answers no JSON", [status(200, "<html>")], "grader_error", /answers no JSON/],
  ["answers something else", [{ score: 1 }], "grader_error", /has not its form/],
  ["answers a reward that is no number", [status(200, '{"reward": 1e999}')], "grader_error", /has not its form/],
  ["measured nothing", [{ reward: null, reason: "my database is away" }], "grader_error", /gave no reward: my database is away/],
  ["gives more than the task allows", [{ reward: 7 }], "task_invalid", /gave the reward 7, and the task allows 0 to 1/],
] as [string, ServerReply[], string, RegExp][])
  test(`a server that ${title} gives no reward, and says why`, async (t) => {
    const { gradeOne } = await remoteWith(t, () => answers[0] as ServerReply);
    const { reward, error } = await gradeOne();
    assert.deepEqual([reward, error?.code], [null, code]);
    assert.match(error?.message ?? "", more);
    assert.doesNotMatch(error?.message ?? "", new RegExp(key));
  });

test("a server that is not there gives no reward, and no work is at fault", async (t) => {
  const { gradeOne, stop } = await remoteWith(t, () => ({ reward: 1 }));
  stop();
  const { reward, status: ended, error } = await gradeOne({ spec: { tries: 1 } });
  assert.deepEqual([reward, ended, error?.code], [null, "infra_error", "grader_unreachable"]);
});

test("a server that does not answer in time gives no reward", async (t) => {
  const { gradeOne } = await remoteWith(t, () => () => undefined);
  const { reward, status: ended, error } = await gradeOne({ spec: { tries: 2, timeout_seconds: 0.2 } });
  assert.deepEqual([reward, ended], [null, "grader_timeout"]);
  assert.match(error?.message ?? "", /\(2 tries\) does not answer within 0\.2 seconds/);
});

test("a server that does not answer for one work, and does for the task's own files, gives it the lowest reward", async (t) => {
  const isWork = ({ body }: AskedServer) => (body.work as { added: string[] }).added.length > 0;
  const { gradeOne } = await remoteWith(t, (asked) => (isWork(asked) ? () => undefined : { reward: 0.5 }));
  const { reward, status: ended, error, evidence } = await gradeOne({ spec: { tries: 1, timeout_seconds: 5 } });
  assert.deepEqual([reward, ended, error?.code], [0, "no_output", "grader_timeout"], JSON.stringify(evidence));
});

test("a failure that passes costs no reward: the same question is asked again", async (t) => {
  const failures: ServerReply[] = [status(503, "", soon), (response) => void response.destroy()];
  const { gradeOne, asked } = await remoteWith(t, (_asked, nth) => failures[nth] ?? { reward: 1 });
  const { reward, evidence } = await gradeOne();
  assert.deepEqual([reward, evidence.tries], [1, 3]);
  assert.equal(new Set(asked.map(({ headers }) => headers["idempotency-key"])).size, 1);
});

test("a work that breaks the server earns the lowest reward, and one that is too large for it too", async (t) => {
  const breaks = ({ body }: AskedServer) => (body.work as { added: string[] }).added.length > 0;
  const { gradeOne } = await remoteWith(t, (asked) => (breaks(asked) ? status(500, "", soon) : { reward: 0.5 }));
  const { reward, status: ended, error } = await gradeOne({ task: { reward_range: [-1, 1] } });
  assert.deepEqual([reward, ended], [-1, "no_output"]);
  assert.match(error?.message ?? "", /the task's own files were graded right after/);
  const large = { ...(await keptWork([], [])), file: "/nowhere", bytes: 33 * 1024 * 1024 };
  const tooLarge = await gradeOne({ spec: { sends: ["work"] }, work: large });
  assert.deepEqual([tooLarge.reward, tooLarge.status, tooLarge.error?.code], [0, "no_output", "output_too_large"]);
});

test("an answer without an end is cut off", async (t) => {
  const { gradeOne } = await remoteWith(t, () => (response) => {
    const piece = Buffer.alloc(1024 * 1024, " ");
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
    };
    response.on("drain", more);
    more();
  });
  const { reward, error } = await gradeOne();
  assert.deepEqual([reward, error?.code], [null, "grader_error"]);
  assert.match(error?.message ?? "", /answers more than/);
});

test("a grading that is stopped while a server thinks ends at once", async (t) => {
  const stop = new AbortController();
  const { gradeOne } = await remoteWith(t, () => () => stop.abort(new Error("enough")));
  assert.deepEqual((await gradeOne({ signal: stop.signal })).status, "cancelled");
});

test("a task names no server that the operator does not", () => {
  const servers = graderServers([NamedGraderServer.parse("http://127.0.0.1:8100")], {});
  const { spec } = remoteTo(servers);
  assert.equal(spec?.parse({ kind: "remote", url: "http://127.0.0.1:8100/verify" }).url, "http://127.0.0.1:8100/verify");
  for (const url of [
    "http://127.0.0.1:8101/verify",
    "https://127.0.0.1:8100/",
    "http://127.0.0.1:8100@evil.example/",
    "http://[::1]:8100/",
  ])
    assert.throws(() => spec?.parse({ kind: "remote", url }), /grader_servers/, url);
  assert.throws(() => spec?.parse({ kind: "remote", url: "file:///etc/passwd" }), /http\(s\)/);
  assert.throws(() => spec?.parse({ kind: "remote", url: "http://127.0.0.1:8100/v", form: "nemo-gym", sends: ["work"] }), /no files/);
  for (const wrong of ["127.0.0.1:8100", "http://a.example/path", "http://user:pass@a.example", "ftp://a.example", "http://a.example?x"])
    assert.throws(() => NamedGraderServer.parse(wrong), wrong);
  assert.throws(() => graderServers([{ url: "http://a.example", api_key_env: "NONE" }], {}), {
    code: "config_invalid",
    message: /NONE for http:\/\/a\.example/,
  });
});
