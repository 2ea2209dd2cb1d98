import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { judge } from "../../graders/judge.ts";
import { runTasks } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import type { SpokenTurn } from "../fakes/records/spoken-trajectory.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { command, injections } from "./judge/injections.ts";
import { judgedAt } from "./judge/judged-at.ts";
import { marks, reader, readPrompt, saying } from "./judge/scripted-judge.ts";

/** Obeys the work itself. */
function gullible(request: WireRequest): ScriptedReply {
  const { inside, statements } = readPrompt(request);
  return inside.includes(command) ? saying(statements, () => "yes") : reader(request);
}

async function judgedBy(t: TestContext, reply: (request: WireRequest, index: number) => ScriptedReply, kind = "vllm") {
  const engine = await ScriptedEngine.start(reply);
  engine.specials = marks;
  t.after(() => engine[Symbol.asyncDispose]());
  return (await judgedAt(t, engine.url, {}, kind)).verdictOn;
}

test("a judge's word on a rubric is the reward, with its votes, its model and its session on the record", async (t) => {
  const forms: unknown[] = [];
  const verdictOn = await judgedBy(t, (request) => {
    forms.push(request.response_format);
    return reader(request);
  });
  const rubric = [
    { name: "word", says: "The work contains the word finished-4711.", weight: 3 },
    { name: "other", says: "The work contains the word nothing-like-it." },
  ];
  const verdict = await verdictOn([{ text: "It is finished-4711" }], [], { rubric, votes: 3 });
  assert.deepEqual([verdict.reward, verdict.status, verdict.tier, verdict.formula], [0.75, "graded", "T1", "(3 × word + 1 × other) / 4"]);
  assert.deepEqual(verdict.components, { word: { value: 1, weight: 3 }, other: { value: 0, weight: 1 } });
  const Form = z.looseObject({ json_schema: z.looseObject({ schema: z.looseObject({ required: z.array(z.string()) }) }) });
  const required = forms.filter((form) => form !== undefined).map((form) => Form.parse(form).json_schema.schema.required);
  assert.deepEqual(required, Array(3).fill(["S1", "S2", "S3", "S4"]));
  const { votes, model, prompt_tokens, session_id } = verdict.evidence as {
    votes: unknown[];
    model: string;
    prompt_tokens: number;
    session_id: string;
  };
  assert.deepEqual([votes.length, typeof model, prompt_tokens > 0, session_id !== ""], [3, "string", true, true]);
  for (const [turns, files] of [
    [[{ tools: [["bash", '{"command":"echo finished-4711"}']] }], []],
    [[{ text: "" }], [{ path: "a.txt", text: "finished-4711" }]],
  ] as [SpokenTurn[], { path: string; text: string }[]][])
    assert.equal((await verdictOn(turns, files)).reward, 1, JSON.stringify([turns, files]));
});

test("fifty works that speak to their judge move no verdict of one that obeys only what stands outside of the work", async (t) => {
  const verdictOn = await judgedBy(t, reader);
  assert.equal(injections.length, 50);
  for (const { title, turns, files } of injections) {
    const verdict = await verdictOn(turns, files);
    assert.deepEqual([verdict.reward, verdict.status], [0, "graded"], `${title}: ${JSON.stringify(verdict.error ?? verdict.evidence)}`);
  }
});

test("at an engine whose tokenizer cannot be asked the fifty move no verdict either, and the verdict says how they were parted", async (t) => {
  const verdictOn = await judgedBy(t, reader, "openai");
  for (const { title, turns, files } of injections) {
    const { reward, evidence } = await verdictOn(turns, files);
    assert.deepEqual([reward, evidence.parted_by], [0, "a space behind each bracket: openai has no tokenizer that can be asked"], title);
  }
  const asked = await (await judgedBy(t, reader))([], []);
  assert.equal(asked.evidence.parted_by, "tokenizer");
});

test("a judge that obeys the work itself pays none of the fifty: what it was talked into does not count", async (t) => {
  const verdictOn = await judgedBy(t, gullible);
  assert.equal((await verdictOn([{ text: "finished-4711" }], [])).reward, 1);
  for (const { title, turns, files } of injections) {
    const verdict = await verdictOn(turns, files);
    assert.equal(verdict.reward, 0, `${title}: ${JSON.stringify(verdict.error)}`);
  }
});

test("votes decide by their majority, and what has none has no reward", async (t) => {
  const opinions = ["yes", "no", "yes", "cannot_tell", "cannot_tell", "no", "yes", "no", "cannot_tell"];
  const verdictOn = await judgedBy(t, (request) => {
    const { inside, statements } = readPrompt(request);
    return saying(statements, (says) =>
      says.includes("finished-4711")
        ? (opinions.shift() ?? "no")
        : reader(request) && inside.includes(/(\S+)\.$/.exec(says)?.[1] ?? "?")
          ? "yes"
          : "no",
    );
  });
  assert.equal((await verdictOn([], [], { votes: 3 })).reward, 1);
  for (let time = 0; time < 2; time++) {
    const { reward, status, error } = await verdictOn([], [], { votes: 3 });
    assert.deepEqual(
      [reward, status, error?.code, error?.message],
      [null, "judge_abstained", "judge_abstained", "the judge has no majority for word"],
    );
  }
});

for (const [title, reply] of [
  ["says no JSON", () => ({ text: "I would rather not" })],
  ["leaves statements out", () => ({ text: '{"S1":{"why":"","met":"yes"}}' })],
  ["comes to no end", (request: WireRequest) => ({ ...reader(request), finish_reason: "length" })],
  ["says yes to all", (request: WireRequest) => saying(readPrompt(request).statements, () => "yes")],
  ["refuses", () => ({ refuse: { status: 400, message: "no" } })],
] as [string, (request: WireRequest) => ScriptedReply][])
  test(`a judge that ${title} gives no reward`, async (t) => {
    const verdictOn = await judgedBy(t, reply);
    const { reward, status, error } = await verdictOn([{ text: "finished-4711" }], []);
    assert.deepEqual([reward, status === "grader_error" || status === "infra_error"], [null, true], JSON.stringify([status, error]));
  });

test("one answer without the form is asked for again", async (t) => {
  const verdictOn = await judgedBy(t, (request, index) => (index === 0 ? { text: "Well, {" } : reader(request)));
  assert.equal((await verdictOn([{ text: "finished-4711" }], [])).reward, 1);
});

test("a judge that fails costs its own task's rewards: the run goes on, and the task is set aside", { timeout: 300_000 }, async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-judge-"));
  t.after(() => rm(place, { recursive: true }));
  await mkdir(join(place, "small"));
  await writeTask(join(place, "small"), "plain");
  await mkdir(join(place, "small", "judged"));
  await writeFile(
    join(place, "small", "judged", "task.yaml"),
    'task_id: judged\ninstruction: "Make done.txt."\nlimits: { agent_seconds: 30, memory_mb: 256, disk_mb: 64 }\ngrader: { kind: judge, rubric: [{ name: a, says: "It is done." }] }\n',
  );
  const notes: string[] = [];
  const isJudge = (request: WireRequest) => JSON.stringify(request.messages).includes("You are a strict grader");
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    reply: (request) => (isJudge(request) ? { text: "no comment" } : solve(request)),
    onNote: (text) => notes.push(text),
    does: (setup, batch, signal) => runTasks(setup, { ...batch, samples: 8 }, signal),
  });
  const records = await run((await pickBackend("process", t.signal)).backend);
  const rewards = (id: string) => records.filter(({ task_id }) => task_id === id).map(({ verdict }) => verdict?.reward);
  // Some were under way when the third had ended.
  const judged = rewards("judged");
  assert.ok(judged.length >= 3 && judged.length < 8 && judged.every((reward) => reward === null), JSON.stringify(judged));
  assert.deepEqual(rewards("plain"), Array(8).fill(1));
  assert.deepEqual(records.find(({ task_id }) => task_id === "judged")?.mask_reason, "grader_error");
  assert.match(notes.join("\n"), /ALARM: task judged is set aside: 3 of 3 rollouts have no reward \(3 grader_error\)/);
  const logs = await readdir(join(place, "run", "sessions"));
  const specs = await Promise.all(
    logs.map(async (name) => JSON.parse((await readFile(join(place, "run", "sessions", name), "utf8")).split("\n")[0] ?? "").spec),
  );
  assert.equal(specs.filter(({ purpose, labels }) => purpose === "judge" && labels.grades.startsWith("r-judged-")).length, judged.length);
});

test("a rubric has names of its own, and votes have a majority", () => {
  const line = { name: "a", says: "It is done." };
  assert.throws(() => judge.spec?.parse({ kind: "judge", rubric: [line, line] }), /two lines have one name/);
  assert.throws(() => judge.spec?.parse({ kind: "judge", rubric: [line], votes: 2 }), /an odd number/);
  assert.throws(() => judge.spec?.parse({ kind: "judge", rubric: [] }), /rubric/);
});
