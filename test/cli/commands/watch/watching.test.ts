/** Spans and lines of a log from real runs: what a receiver is sent, what stderr has, and that neither holds up a run. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ScriptedEngine } from "../../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";
import { cliProcess } from "../../../fakes/processes/cli.ts";
import { attributesOfSpan, type OtlpReceiver, type SentSpan, startReceiver } from "../../../fakes/proxies/otlp-receiver.ts";
import { runFile, solve, writeTask } from "../../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("watching");
const keys = { ENGINE_KEY: "key-of-the-engine-17", OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20key-of-the-receiver-23" };

/** One rollout of the small task; its log is for machines. */
async function watched(name: string, otel: string) {
  await using engine = await ScriptedEngine.start(solve);
  const folder = join(scratch, name);
  await mkdir(folder);
  await writeTask(folder, "small");
  const file = join(folder, "run.yaml");
  const text = runFile({ engine: engine.url, tasks: ["small"] }).replace("engine: {", "engine: { api_key_env: ENGINE_KEY,");
  await writeFile(file, text.replace("samples: 2", "samples: 1"));
  const flags = ["--otel", otel, "--log-format", "json"];
  const result = await cliProcess(["run", "-c", file, "-o", join(folder, "runs"), ...flags], { env: keys });
  assert.equal(result.code, 0, result.stderr);
  const lines = result.stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { result, lines, run: join(folder, "runs", String(lines.find(({ set_id }) => set_id)?.set_id)) };
}

/** A trace as indented names, in the order of time. */
function drawn(spans: readonly SentSpan[], parent: string | undefined = undefined, depth = 0): string[] {
  const below = spans.filter((span) => (span.parentSpanId || undefined) === parent);
  const inOrder = below.toSorted((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)));
  return inOrder.flatMap((span) => ["  ".repeat(depth) + span.name, ...drawn(spans, span.spanId, depth + 1)]);
}

const named = ({ spans }: OtlpReceiver, name: string) => spans.filter((span) => span.name === name);

test("a rollout is one trace of its stages, calls and tries, and neither spans nor log lines hold keys, prompts or answers", async () => {
  await using receiver = await startReceiver();
  const { result, lines } = await watched("well", receiver.url);
  const [root] = named(receiver, "rollout");
  const [set] = named(receiver, "set");
  assert.ok(root && set);
  const trace = receiver.spans.filter(({ traceId }) => traceId === root.traceId);
  assert.equal(trace.length + 1, receiver.spans.length, "the set alone is elsewhere");
  assert.deepEqual(
    drawn(trace).toSorted(),
    [
      ...["rollout", "  queue", "  init", "  grade", "  store", "  invoke_agent command"],
      ...["    chat scripted", "      try", "    execute_tool bash", "    chat scripted", "      try"],
    ].toSorted(),
  );
  assert.deepEqual([root.links[0]?.traceId, root.links[0]?.spanId], [set.traceId, set.spanId]);
  for (const { startTimeUnixNano: start, endTimeUnixNano: end } of trace) assert.ok(BigInt(start) <= BigInt(end));

  const rollout = attributesOfSpan(root);
  assert.deepEqual([rollout["alidade.task.id"], rollout["alidade.reward"], rollout["alidade.turns"]], ["small", 1, 2]);
  const calls = receiver.spans.filter(({ name }) => name.startsWith("chat "));
  const [call] = calls.map(attributesOfSpan);
  assert.deepEqual(
    calls.map(({ kind }) => kind),
    [3, 3],
    "CLIENT",
  );
  const [tool] = named(receiver, "execute_tool bash");
  assert.deepEqual([tool?.startTimeUnixNano, tool?.endTimeUnixNano], [calls[0]?.endTimeUnixNano, calls[1]?.startTimeUnixNano]);
  assert.deepEqual([call?.["gen_ai.operation.name"], call?.["gen_ai.provider.name"]], ["chat", "vllm"]);
  assert.ok(Number(call?.["gen_ai.usage.input_tokens"]) > 0 && Number(call?.["gen_ai.usage.output_tokens"]) > 0);
  const [tried] = named(receiver, "try");
  assert.deepEqual([tried?.kind, attributesOfSpan(tried!)["http.response.status_code"]], [3, 200]);
  assert.deepEqual(receiver.requests[0], { path: "/v1/traces", authorization: "Bearer key-of-the-receiver-23" });
  assert.deepEqual([...receiver.services], ["alidade"]);

  const told = lines.filter(({ event }) => event === "call");
  assert.deepEqual(
    told.map(({ level, rollout_id, session_id, call_id, attempt }) => [level, rollout_id, session_id, call_id, attempt]),
    calls.map((span) => {
      const ids = attributesOfSpan(span);
      return ["info", ids["alidade.rollout.id"], ids["alidade.session.id"], ids["alidade.call.id"], 1];
    }),
  );
  const done = lines.find(({ event }) => event === "rollout_done");
  assert.deepEqual([done?.set_id, done?.reward, done?.turns], [attributesOfSpan(set)["alidade.set.id"], 1, 2]);
  for (const line of lines) assert.ok(typeof line.time === "string" && typeof line.level === "string" && typeof line.event === "string");
  for (const secret of ["key-of-the-engine", "key-of-the-receiver", "sk-ali-", "Make done.txt", "echo yes"])
    for (const text of [receiver.text(), result.stderr]) assert.ok(!text.includes(secret), secret);
});

test("a receiver that hangs or is away holds up neither a run nor its end, and what is recorded is whole", async () => {
  await using hanging = await startReceiver({ hangs: true });
  const away = await startReceiver();
  await away[Symbol.asyncDispose]();
  for (const [name, url] of [
    ["hangs", hanging.url],
    ["away", away.url],
  ] as const) {
    const { run, lines } = await watched(name, url);
    const trajectories = await readFile(join(run, "trajectories.jsonl"), "utf8");
    assert.equal(trajectories.trim().split("\n").length, 1);
    assert.ok(
      lines.some(({ message }) => /^alidade: spans are lost, their receiver does not take them: ./.test(String(message))),
      name,
    );
  }
  assert.ok(hanging.requests.length > 0);
});
