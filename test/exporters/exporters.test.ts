/** What the formats of our own say of a session with a call of every kind. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { canonical } from "../../exporters/canonical.ts";
import { chat } from "../../exporters/chat.ts";
import { flat } from "../../exporters/flat.ts";
import { exporterNamed, exporters } from "../../exporters/registry.ts";
import { FlatRow, reconstruct, verifyRows } from "../../reconstruct/index.ts";
import { isRouted } from "../../reconstruct/rows/place-routing.ts";
import { exported } from "../fakes/records/exported.ts";
import { goldenSibling, goldenTrajectory } from "../fakes/records/golden-session.ts";
import { assistant, LogBuilder, recognised, system, thinking, toolCall, toolResult, user } from "../fakes/records/log-builder.ts";
import { pictureBytes, picturedGroup } from "../fakes/records/pictured-group.ts";
import { routed } from "../fakes/records/routed.ts";
import { need } from "../needs.ts";

/** A tool turn, an abandoned answer and its retry, a title call, a call under a grammar and one without logprobs. */
function session(reward: number | null = 1): Trajectory {
  const log = new LogBuilder();
  const start = [system("be good"), user("fix it")];
  const says = assistant(thinking("well"), "let me see", toolCall("1", '{"cmd":"ls"}'));
  log.call({ messages: [user("a title please")], request_class: "title" });
  log.call({ messages: start, says, delivery: "cut" });
  const b = log.call({ messages: start, says, tools: [{ name: "bash", parameters: { type: "object" }, kind: "function" }] });
  const next = [...start, says, toolResult("1", "a.txt")];
  const tools = [{ name: "bash", parameters: { type: "object" }, kind: "function" as const }];
  log.call({ messages: next, says: assistant("done"), parent: b, restored: [recognised(b, 2)], tools });
  log.call({ messages: [user("choose")], says: assistant("yes"), logprobs: [0, -1], grammar: true });
  log.call({ messages: [user("no numbers")], says: assistant("one two"), logprobs: null });
  return reconstruct(log.entries, { reward, group: { size: 4 } });
}

function textOnly(): Trajectory {
  const log = new LogBuilder({ purpose: "live" });
  const says = assistant("hello");
  log.call({ messages: [user("hi")], says, prompt: null });
  log.call({ messages: [user("hi"), says, user("again")], prompt: null });
  return reconstruct(log.entries);
}

test("an unknown format is refused with the names that there are", () => {
  assert.throws(() => exporterNamed("arrow"), /"arrow"; there are: canonical, flat, parquet, chat, /);
});

test("canonical lines are the trajectories themselves", async () => {
  const trajectory = session();
  const { rows } = await exported(canonical, [trajectory]);
  assert.deepEqual(Trajectory.parse(rows[0]), Trajectory.parse(trajectory));
});

test("a record of an older release, whose nodes say true under a grammar, is read, counted and exported as one of today", async () => {
  const trajectory = session();
  const isGrammar = ({ reason }: (typeof trajectory.nodes)[number]): boolean => reason === "grammar";
  assert.equal(trajectory.nodes.filter(isGrammar).length, 1);
  const older = Trajectory.parse({
    ...trajectory,
    nodes: trajectory.nodes.map((node) => (isGrammar(node) ? { ...node, trainable: true, reason: null } : node)),
  });
  assert.deepEqual((await exported(canonical, [older])).rows, [trajectory]);
  for (const allowGrammar of [false, true])
    assert.deepEqual((await exported(flat, [older], { allowGrammar })).rows, (await exported(flat, [trajectory], { allowGrammar })).rows);
});

test("flat rows agree with the tree, and what they leave out has its reason", async () => {
  const trajectory = session();
  const { rows, report } = await exported(flat, [trajectory]);
  const parsed = rows.map((row) => FlatRow.parse(row));
  assert.deepEqual(verifyRows(trajectory, parsed), []);
  assert.equal(parsed.length, 1);
  assert.deepEqual(report.left_out, { auxiliary: 1, undelivered: 1, grammar: 1, no_logprob: 1 });
  const [row] = parsed as [FlatRow];
  assert.deepEqual(
    row.segments.map(({ kind, trainable }) => [kind, trainable]),
    [
      ["prompt", false],
      ["sampled", true],
      ["observation", false],
      ["sampled", true],
    ],
  );
  assert.equal(row.loss_mask.indexOf(1), row.prompt_length);
  assert.ok(row.logprobs.every((logprob, at) => (row.loss_mask[at] === 1 ? typeof logprob === "number" : logprob === null)));
});

test("rows for trainers that replay experts name their tokens' experts, as flat rows do; other rows name none", async () => {
  const trajectories = [routed(goldenTrajectory(), new Map()), routed(goldenSibling(), new Map())];
  const flatRows = (await exported(flat, trajectories)).rows.map((row) => FlatRow.parse(row));
  const [, main, , sibling] = flatRows.map(({ routing }) => routing);
  assert.ok(flatRows.every(isRouted));
  for (const exporter of exporters.filter(({ extension }) => extension === "jsonl")) {
    const named = (await exported(exporter, trajectories)).rows.map((row) => row.routing);
    if (exporter.name === "nemo-rl") assert.deepEqual(named, [main, sibling]);
    else if (exporter.docs.experts)
      assert.deepEqual(
        named,
        flatRows.map(({ routing }) => routing),
        exporter.name,
      );
    else assert.deepEqual(new Set(named), new Set([undefined]), exporter.name);
  }
});

test("flat rows take grammar calls when allowed, and still never train a forced token", async () => {
  const { rows, report } = await exported(flat, [session()], { allowGrammar: true });
  const grammar = rows.map((row) => FlatRow.parse(row)).find((row) => row.logprobs.includes(0));
  assert.deepEqual(grammar?.loss_mask.slice(-2), [0, 1]);
  // So a mask of 0 does not mean that there is no logprob.
  assert.deepEqual(new Set(grammar?.logprobs.filter((_, at) => grammar.loss_mask[at] === 0)), new Set([null, 0]));
  assert.ok(!("grammar" in report.left_out));
});

test("a flat row that is too long ends at an earlier call, and the rest is over_length", async () => {
  const trajectory = session();
  const whole = FlatRow.parse((await exported(flat, [trajectory])).rows[0]);
  const limit = whole.token_ids.length - 1;
  const { rows, report } = await exported(flat, [trajectory], { maxTokens: limit });
  const cut = FlatRow.parse(rows[0]);
  assert.deepEqual(cut.token_ids, whole.token_ids.slice(0, cut.token_ids.length));
  assert.equal(cut.segments.at(-1)?.kind, "sampled");
  assert.equal(cut.cut, true);
  assert.equal(report.left_out.over_length, 1);
  const nothing = FlatRow.parse((await exported(flat, [trajectory], { maxTokens: 5 })).rows[0]);
  assert.deepEqual([nothing.dummy, nothing.loss_mask], [true, [0, 0, 0, 0, 0]]);
});

test("chat rows have OpenAI's shape, and every turn of the policy weighs 1 in one row", async () => {
  const { rows, report } = await exported(chat, [session()]);
  assert.deepEqual(report.left_out, { auxiliary: 1, undelivered: 1 });
  assert.equal(rows.length, 3);
  assert.deepEqual(rows[0], {
    messages: [
      { role: "system", content: "be good" },
      { role: "user", content: "fix it" },
      {
        role: "assistant",
        content: "let me see",
        reasoning_content: "well",
        tool_calls: [{ id: "1", type: "function", function: { name: "bash", arguments: '{"cmd":"ls"}' } }],
        weight: 1,
      },
      { role: "tool", tool_call_id: "1", content: "a.txt" },
      { role: "assistant", content: "done", weight: 1 },
    ],
    tools: [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }],
    reward: 1,
    trajectory_id: session().trajectory_id,
    rollout_id: "roll1",
    group_id: "grp",
    sample_index: 0,
    agent: "main",
    call_id: "call00000000000000000003",
  });
});

test("a text-only session has no flat rows and one conversation", async () => {
  assert.deepEqual((await exported(flat, [textOnly()])).report.left_out, { no_token_ids: 2 });
  const { rows } = await exported(chat, [textOnly()]);
  assert.equal(rows.length, 1);
  const { messages } = rows[0] as { messages: { role: string; weight?: number }[] };
  assert.deepEqual(
    messages.filter((message) => message.role === "assistant").map((message) => message.weight),
    [1, 1],
  );
});

test("of two branches, the shared turn weighs 1 in the first and 0 in the second", async () => {
  const log = new LogBuilder();
  const says = assistant("two ways");
  const a = log.call({ messages: [user("u")], says });
  for (const way of ["left", "right"]) log.call({ messages: [user("u"), says, user(way)], parent: a });
  const { rows } = await exported(chat, [reconstruct(log.entries)]);
  const weights = rows.map((row) => (row as { messages: { weight?: number }[] }).messages.map((message) => message.weight));
  assert.deepEqual(weights, [
    [undefined, 1, undefined, 1],
    [undefined, 0, undefined, 1],
  ]);
});

test("the Python reader reads canonical and flat files alike", async (t) => {
  if (!(await need(t, "python"))) return;
  const folder = await mkdtemp(join(tmpdir(), "alidade-python-"));
  t.after(() => rm(folder, { recursive: true }));
  const trajectory = session();
  const flatExport = await exported(flat, [trajectory]);
  await writeFile(join(folder, "rows.jsonl"), flatExport.bytes);
  await writeFile(join(folder, "trajectories.jsonl"), (await exported(canonical, [trajectory])).bytes);
  const script = [
    "import sys, json; sys.path.insert(0, sys.argv[1]); from alidade.rows import path, read",
    "rows = list(read(sys.argv[2] + '/rows.jsonl')); [t] = read(sys.argv[2] + '/trajectories.jsonl')",
    "leaf = {t['trace_id']: t['leaf_node_id'] for t in t['traces']}[rows[0]['trace_id']]",
    "print(json.dumps([sum(rows[0]['loss_mask']), rows[0]['token_ids'] == path(t, leaf)]))",
  ].join("\n");
  const { stdout } = await promisify(execFile)("python3", ["-c", script, join(import.meta.dirname, "../../clients/python"), folder]);
  const row = FlatRow.parse(flatExport.rows[0]);
  assert.deepEqual(JSON.parse(stdout), [row.loss_mask.filter((mask) => mask === 1).length, true]);
});

test("trl-sft names the pictures of a row in `images` too, with which TRL's own trainer refuses it", async () => {
  const { rows } = await exported(exporterNamed("trl-sft"), picturedGroup(), { media: pictureBytes });
  const shown = rows.map(({ media, images }) => ({ images, named: (media as { sha256: string }[]).map(({ sha256 }) => sha256) }));
  assert.deepEqual(
    shown.map(({ named }) => named.length),
    [2, 1],
  );
  for (const { images, named } of shown) assert.deepEqual(images, named);
});
