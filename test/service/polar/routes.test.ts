/** A bridge of Polar's against the service: what it sends, what it is answered, and what it is refused. The test itself is the node. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { putPacked } from "../../../service/blobs/index.ts";
import { Callbacks } from "../../../service/index.ts";
import type { Claim } from "../../../service/ledger/index.ts";
import { until } from "../../fakes/machine/until.ts";
import { serviceAt } from "../../fakes/proxies/service-at.ts";
import { attemptResult } from "../../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../../fakes/records/golden-session.ts";

const request = {
  task_id: "task-2-9",
  instruction: "Fix the bug",
  num_samples: 2,
  timeout_seconds: 900,
  runtime: { image: "runtime:latest", workdir: "/testbed", prepare: [{ type: "exec", command: "make deps", env: { A: "it's" } }], gpus: 0 },
  agent: { harness: "claude_code", model_name: "any", settings: {} },
  builder: { strategy: "prefix_merging" },
  evaluator: { strategy: "script", config: { command: ["sh", "-c", "true"] }, refresh_runtime: true },
  metadata: { group_id: 9, policy_version: 2, instance: "abc", agent_timeout: 300 },
};

test("a bridge submits a task, polls it, and is called back with the finished one", async (t) => {
  const { call, ledger, blobs, lease, notes } = await serviceAt(t);
  const told: string[] = [];
  const receiver = createServer(async (asked, response) => {
    told.push(Buffer.concat(await asked.toArray()).toString("utf8"));
    response.end('{"ok":true}');
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  t.after(() => receiver.close());
  const callback_url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/callback/task_result`;
  for (const _ of ["once", "again"])
    assert.deepEqual((await call("POST", "/rollout/task/submit", { ...request, callback_url })).body, {
      task_id: "task-2-9",
      status: "running",
    });
  const at = "/rollout/task/task-2-9";
  assert.deepEqual((await call("GET", at)).body, {
    task_id: "task-2-9",
    status: "running",
    total_sessions: 2,
    completed_sessions: 0,
    result_paths: [],
    results: [],
  });
  const [one, two, ...more] = (await ledger.claim(lease, 9)) as [Claim, Claim];
  assert.deepEqual(more, [], "a request that comes twice counts once");
  const { environment, limits, grader } = one.task;
  assert.deepEqual(
    [one.spec.harness, environment.image, environment.workdir, environment.network],
    ["claude-code", "runtime:latest", "/testbed", "none"],
  );
  assert.deepEqual([environment.user, environment.writable, environment.work], ["root", "root", "layer"]);
  assert.match(environment.setup?.command.join(" ") ?? "", /export A='it'\\''s'\nmake deps/);
  assert.deepEqual([limits.init_seconds, limits.agent_seconds, limits.grade_seconds, grader.kind], [900, 300, 900, "script"]);
  const payload = await putPacked(blobs, "polar/1", goldenTrajectory({ reward: 1 }));
  await ledger.finish(one, attemptResult({ payload, times: { queued: 1, init: 2, run: 5, post: 9, done: 14 } }));
  assert.deepEqual((await call("GET", at)).body.completed_sessions, 1);
  assert.deepEqual(told, []);
  const error = { code: "sandbox_died", message: "gone" };
  await ledger.finish(two, attemptResult({ state: "failed", reward: null, error }));
  await until(() => told.length === 1);
  const { body } = await call("GET", at);
  assert.deepEqual(JSON.parse(told[0] ?? ""), body);
  assert.deepEqual([body.status, body.completed_sessions], ["completed", 2]);
  const [good, failed] = body.results;
  assert.deepEqual([good.status, good.trajectory.status, good.error, good.session_id], ["COMPLETED", "COMPLETED", null, one.rollout_id]);
  assert.deepEqual(good.timing, { register_to_init_queue_ms: 1, init_ms: 3, run_ms: 4, postrun_ms: 5 });
  const { group_id, policy_version, instance } = good.metadata;
  assert.deepEqual([group_id, policy_version, instance], [9, 2, "abc"]);
  let trained = 0;
  for (const trace of good.trajectory.traces) {
    const { prompt_ids, response_ids, loss_mask, response_logprobs, prompt_messages, response_messages, reward } = trace;
    assert.ok(prompt_ids.length > 0 && prompt_messages.length > 0 && response_messages.length > 0 && reward === 1);
    assert.deepEqual([loss_mask.length, response_logprobs.length], [response_ids.length, response_ids.length]);
    trained += loss_mask.reduce((sum: number, each: number) => sum + each, 0);
  }
  assert.equal(trained, goldenTrajectory({ reward: 1 }).fidelity.trainable_tokens, "each trainable token is in one trace");
  assert.deepEqual([failed.status, failed.trajectory.traces, failed.error], ["ERROR", [], "sandbox_died: gone"]);
  assert.deepEqual((await call("GET", "/rollout/status")).body.tasks, { "task-2-9": "completed" });
  assert.deepEqual(notes, []);
});

test("an agent that its own budget ended is Polar's agent timeout, and per_request gives a trace a call", async (t) => {
  const { call, ledger, blobs, lease } = await serviceAt(t);
  await call("POST", "/rollout/task/submit", { ...request, num_samples: 1, builder: {} });
  const [claim] = (await ledger.claim(lease, 1)) as [Claim];
  const trajectory = goldenTrajectory({ reward: 0 });
  const payload = await putPacked(blobs, "polar/2", trajectory);
  await ledger.finish(claim, attemptResult({ payload, reward: 0, stop_reason: "harness_timeout" }));
  const [result] = (await call("GET", "/rollout/task/task-2-9")).body.results;
  assert.deepEqual([result.status, result.trajectory.metadata.agent_result.timeout_source], ["TIMEOUT", "agent"]);
  const calls = new Set(trajectory.nodes.filter(({ trainable }) => trainable).map(({ call_id }) => call_id));
  assert.equal(result.trajectory.traces.length, calls.size);
  for (const { metadata } of result.trajectory.traces) assert.equal(metadata.training_filter.trainable, true);
});

test("a task that ends early is completed, and the sessions that it ended say so as Polar's do", async (t) => {
  const { call, ledger, lease } = await serviceAt(t);
  await call("POST", "/rollout/task/submit", { ...request, num_samples: 3, early_stop_min_usable_sessions: 2 });
  const claims = await ledger.claim(lease, 3);
  for (const claim of claims.slice(0, 2)) await ledger.finish(claim, attemptResult());
  const { status, results } = (await call("GET", "/rollout/task/task-2-9")).body;
  assert.equal(status, "completed");
  assert.deepEqual(
    results.map(({ status, metadata }: { status: string; metadata: Record<string, unknown> }) => [
      status,
      metadata.early_stop_cancelled ?? false,
      metadata.early_stop_min_usable_sessions ?? null,
    ]),
    [
      ["COMPLETED", false, null],
      ["COMPLETED", false, null],
      ["ERROR", true, 2],
    ],
  );
  assert.deepEqual((await call("GET", "/rollout/status")).body.tasks, { "task-2-9": "completed" });
  // Cancelled before enough stand it is cancelled, and no session says that others were enough.
  await call("POST", "/rollout/task/submit", { ...request, task_id: "two", num_samples: 3, early_stop_min_usable_sessions: 2 });
  const { body } = await call("DELETE", "/rollout/task/two");
  assert.deepEqual([body.status, body.results[0].metadata.early_stop_cancelled], ["cancelled", undefined]);
});

test("a cancelled task is cancelled, and one that was cancelled before it came is refused", async (t) => {
  const { call } = await serviceAt(t);
  const at = "/rollout/task/task-2-9";
  assert.equal((await call("GET", at)).status, 404);
  assert.equal((await call("DELETE", at)).status, 404);
  await call("POST", "/rollout/task/submit", request);
  const { status, completed_sessions, results } = (await call("DELETE", at)).body;
  assert.deepEqual([status, completed_sessions, results[0].status], ["cancelled", 2, "ERROR"]);
  const early = (await call("DELETE", "/rollout/task/late?register_if_missing=true")).body;
  assert.deepEqual([early.status, early.total_sessions], ["cancelled", 0]);
  for (const other of [{ task_id: "late" }, { instruction: "Other" }, { num_samples: 3 }]) {
    const { status, body } = await call("POST", "/rollout/task/submit", { ...request, ...other });
    assert.deepEqual([status, body.error.param], [409, "task_id"], body.error.message);
  }
});

test("what Polar may ask and this service cannot give is refused by its field, and nothing of it is taken", async (t) => {
  const { call } = await serviceAt(t);
  const { runtime, agent, evaluator } = request;
  const refused: [object, string][] = [
    [{ early_stop_min_usable_sessions: 3 }, "early_stop_min_usable_sessions"],
    [{ num_samples: 0 }, "num_samples"],
    [{ task_id: "half \ud800" }, "task_id"],
    [{ max_steps: 3 }, "max_steps"],
    [{ evaluator: null }, "evaluator"],
    [{ evaluator: { strategy: "session_completed" } }, "evaluator.strategy"],
    [{ evaluator: { strategy: "swebench_harness" } }, "evaluator.config.instance"],
    [{ evaluator: { strategy: "swebench_harness", config: { instance: { instance_id: "a" } } } }, "evaluator.config.instance"],
    [
      { evaluator: { strategy: "test_on_output", config: { test_command: "x", expected_output_json: "[" } } },
      "evaluator.config.expected_output_json",
    ],
    [{ evaluator: { strategy: "test_on_output", config: { repo_dir: "../x" } } }, "evaluator.config.repo_dir"],
    [{ evaluator: { strategy: "harbor_rubric", config: { tests_dir: "/etc" } } }, "evaluator.config.tests_dir"],
    [{ evaluator: { strategy: "__proto__" } }, "evaluator.strategy"],
    [{ evaluator: { strategy: "script", config: { command: [] } } }, "evaluator.config.command"],
    [{ evaluator: { strategy: "script", config: { command: ["x"], files: "/etc" } } }, "evaluator.config.files"],
    [{ evaluator: { ...evaluator, env: { A: "1" } } }, "evaluator.env"],
    [{ builder: { strategy: "mod:Class" } }, "builder.strategy"],
    [{ builder: { config: { eot: 2 } } }, "builder.config"],
    [{ agent: { harness: "openclaw" } }, "agent.harness"],
    [{ agent: { ...agent, import_path: "mod:Class" } }, "agent.import_path"],
    [{ agent: { ...agent, settings: { sampling_seed: 1 } } }, "agent.settings.sampling_seed"],
    [{ agent: { ...agent, mcp_servers: [{}] } }, "agent.mcp_servers"],
    [{ runtime: { ...runtime, backend: "podman" } }, "runtime.backend"],
    [{ runtime: { ...runtime, image: "/data/a.sif" } }, "runtime.image"],
    [{ runtime: { ...runtime, image: "oras://x/y" } }, "runtime.image"],
    [{ runtime: { ...runtime, eval_prepare: [{ type: "exec", command: "true" }] } }, "runtime.eval_prepare"],
    [{ runtime: { ...runtime, network: "bridge" } }, "runtime.network"],
    [{ runtime: { ...runtime, gpus: 1 } }, "runtime.gpus"],
    [{ runtime: { ...runtime, kwargs: { volumes: ["/:/host"] } } }, "runtime.kwargs"],
    [{ runtime: { ...runtime, prepare: [{ type: "upload_dir", source: "/etc", target: "/x" }] } }, "runtime.prepare.0.type"],
    [{ runtime: { ...runtime, workdir: "../x" } }, "runtime.workdir"],
    [{ metadata: { eval_sampling_seed_base: 4 } }, "metadata.eval_sampling_seed_base"],
    [{ metadata: { agent_timeout: "long" } }, "metadata.agent_timeout"],
    [{ metadata: { row: "x".repeat(2_000) } }, "metadata.row"],
    [{ metadata: { alidade_task: "fix-slug" } }, "runtime"],
    [{ runtime: null, evaluator: null, metadata: { alidade_task: "fix-slug" } }, "metadata.alidade_task"],
    [{ callback_url: "file:///etc/passwd" }, "callback_url"],
  ];
  for (const [more, field] of refused) {
    const { status, body } = await call("POST", "/rollout/task/submit", { ...request, ...more });
    assert.deepEqual([status, body.error.param], [400, field], `${JSON.stringify(more)}: ${body.error.message}`);
  }
  assert.deepEqual((await call("GET", "/sets")).body.sets, []);
  assert.equal((await call("POST", "/rollout/task/submit", request, "read")).status, 403);
});

test("a bridge that sends no bearer token gives it in its address, or in Polar's own header", async (t) => {
  const { url } = await serviceAt(t);
  const status = async (headers: Record<string, string>) => (await fetch(`${url}/rollout/status`, { headers })).status;
  const basic = (words: string) => ({ authorization: `Basic ${Buffer.from(words).toString("base64")}` });
  for (const headers of [basic("polar:all"), basic(":read"), { "x-polar-control-token": "all" }]) assert.equal(await status(headers), 200);
  for (const headers of [basic("all"), basic("all:x"), { "x-polar-control-token": "" }]) assert.equal(await status(headers), 401);
});

test("an address to call back is public, unless the operator says otherwise", async (t) => {
  const { ledger } = await serviceAt(t);
  await using callbacks = new Callbacks(ledger, false, () => undefined);
  for (const url of ["http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]/x", "http://169.254.169.254/x", "http://u:p@example.com/"])
    assert.throws(() => callbacks.assertMayCall(url, ""), { code: "request_invalid", param: "callback_url" }, url);
  callbacks.assertMayCall("https://trainer.example/hook", "");
});

test("addresses that wait to be called have a bound by namespace", async (t) => {
  const { ledger } = await serviceAt(t);
  await using callbacks = new Callbacks(ledger, false, () => undefined, 60_000);
  const url = "https://trainer.example/hook";
  for (let at = 0; at < 2_000; at++) callbacks.add(`set${at}`, { url, namespace: "team-a", answer: async () => "" });
  assert.throws(() => callbacks.assertMayCall(url, "team-a"), { code: "too_many_requests", status: 429, param: "callback_url" });
  callbacks.assertMayCall(url, "team-b");
});
