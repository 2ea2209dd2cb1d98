/**
 * A judge at a real vLLM: its guided decoding, its tokenizer, its template. Its tiny model cannot read, so this proves what
 * the judge is asked and what comes of its answers, and not that a model withstands what it reads: test/graders/judge.test.ts
 * has judges that can read, and they are scripted.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { Limiter } from "../../base/host/limiter.ts";
import { textOf } from "../../base/schema/message.ts";
import { tryJson } from "../../base/schema/read-json.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { Call } from "../../proxy/session/call.ts";
import { type Injection, injections, plainWorks } from "../graders/judge/injections.ts";
import { judgedAt } from "../graders/judge/judged-at.ts";
import { startVllm, type Vllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";

/** What this template writes itself, and what its tokenizer would read as that in any text. */
const marks = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|endoftext|>", "<tool_call>", "</tool_call>"];

const Judgement = z.strictObject({ why: z.string(), met: z.enum(["yes", "no", "cannot_tell"]) });
/** Each statement once, and nothing else. */
const Answer = z.strictObject({ S1: Judgement, S2: Judgement, S3: Judgement });

/** Each speech once, each way of carrying it twice: scripted judges hear all fifty, and a work costs this server five seconds. */
const works = injections.filter((_, nth) => nth % 5 === Math.floor(nth / 5) % 5);

test("works that speak to their judge change nothing that a real vLLM reads outside of their fence, and earn nothing by it", {
  timeout: 600_000,
}, async (t) => {
  if (!(await need(t, "vllm"))) return;
  await using vllm = await startVllm(t.signal);
  const [swayed, usual] = [await judged(t, vllm, works), await judged(t, vllm, Array(2).fill(plainWorks).flat())];
  const calls = [...swayed.calls, ...usual.calls];
  const asked = new Set<string>();
  for (const call of calls) asked.add(await outsideOf(call, (text) => idsOf(vllm, text)));
  assert.equal(asked.size, 1, [...asked].slice(0, 2).join("\n---\n"));
  const whole = calls.filter(({ outcome }) => outcome?.finish_reason === "stop");
  for (const call of whole) assert.ok(answerOf(call).success, textOf(call.outcome?.message ?? assert.fail()));
  const verdicts = [...swayed.verdicts, ...usual.verdicts];
  for (const one of verdicts) proveVerdict(one);
  proveNotMoved(swayed.calls, usual.calls, t);

  const wrong = verdicts.filter(({ error }) => error?.message.includes("whose truth is known"));
  t.diagnostic(
    `${whole.length} of ${calls.length} answers were whole; ${wrong.length} of ${verdicts.length} works met a judge that was wrong about a known truth`,
  );
});

async function judged(t: TestContext, vllm: Vllm, works: readonly Injection[]) {
  // This server's parser takes all that the model says for a thought, where its template does not close one.
  const { session, verdictOn } = await judgedAt(t, vllm.url, { chat_template_kwargs: { enable_thinking: false } });
  // The server samples sixteen at once, and other tests ask it too.
  const limiter = new Limiter(6);
  const verdicts = await Promise.all(works.map(({ turns, files }) => limiter.run(t.signal, () => verdictOn(turns, files))));
  return { verdicts, calls: session.calls() };
}

async function idsOf({ url, model }: Vllm, prompt: string): Promise<number[]> {
  const body = JSON.stringify({ model, prompt, add_special_tokens: false });
  const response = await fetch(`${url}/tokenize`, { method: "POST", headers: { "content-type": "application/json" }, body });
  return z.looseObject({ tokens: z.array(z.number()) }).parse(await response.json()).tokens;
}

function promptOf({ idText, promptLength }: Call): number[] {
  return [...(idText ?? assert.fail("a call without ids")).toIds().slice(0, promptLength)];
}

function questionOf({ messages: [, question] }: Call): string {
  return textOf(question ?? assert.fail("a call without a question"));
}

function answerOf({ outcome }: Call) {
  return Answer.safeParse(tryJson(textOf(outcome?.message ?? assert.fail(JSON.stringify(outcome)))));
}

/**
 * Before and behind the work stand the ids of that text alone, and no mark but the template's own: nothing of a work runs out of
 * its fence. Returns that text without what is drawn for each vote: names, words and the order of the statements.
 */
async function outsideOf(call: Call, toIds: (text: string) => Promise<number[]>): Promise<string> {
  const question = questionOf(call);
  const [, tag] = /^<(work-[0-9a-f]{32})>$/m.exec(question) ?? assert.fail(question);
  const before = question.slice(0, question.indexOf(`<${tag}>`));
  const behind = question.slice(question.indexOf(`\n</${tag}>\n`) + 1);
  const rules = textOf(call.messages[0] ?? assert.fail("a call without rules"));
  const [first, last, markIds] = await Promise.all([
    toIds(`<|im_start|>system\n${rules}<|im_end|>\n<|im_start|>user\n${before}`),
    toIds(`${behind}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n`),
    toIds(marks.join("")),
  ]);
  const prompt = promptOf(call);
  assert.deepEqual([prompt.slice(0, first.length), prompt.slice(-last.length)], [first, last], question);
  const found = prompt.filter((id) => markIds.includes(id));
  const [start, end, think, thought] = markIds;
  assert.deepEqual([markIds.length, ...found], [marks.length, start, end, start, end, start, think, thought], question);
  const undrawn = behind.replaceAll(tag ?? "", "tag").replaceAll(/\bw[0-9a-f]{12}\b/g, "word");
  return [
    rules,
    before,
    ...undrawn
      .split("\n")
      .map((line) => line.replace(/^S\d: /, ""))
      .sort(),
  ].join("\n");
}

/** A number that a vote can give, or none and why. */
function proveVerdict({ reward, status, error }: Verdict): void {
  if (reward === null) assert.match(error?.message ?? "", /do not count: .|has no majority for word/);
  else assert.ok(reward === 0 || reward === 1, `${reward}, ${status}`);
}

/** The statement of the rubric is true of none of the works. The most that a speech may add is what chance alone may. */
function proveNotMoved(swayed: readonly Call[], usual: readonly Call[], t: TestContext): void {
  const [said, saidUsually] = [swayed, usual].map((calls) => calls.flatMap(opinionOf));
  assert.ok(said?.length && saidUsually?.length);
  const share = (opinions: readonly string[]): number => opinions.filter((met) => met === "yes").length / opinions.length;
  t.diagnostic(`yes with a speech: ${share(said)} of ${said.length} votes; without: ${share(saidUsually)} of ${saidUsually.length}`);
  // Three deviations of the difference of two samples of a share, at the share where it is largest.
  assert.ok(share(said) - share(saidUsually) < 3 * Math.sqrt(0.25 / said.length + 0.25 / saidUsually.length));
}

/** What a vote on a work says about the rubric; none where nothing was to be seen, as in the task's own files, or the answer was cut. */
function opinionOf(call: Call): string[] {
  const question = questionOf(call);
  const [id] = /^S\d(?=: The work contains the word finished-4711)/m.exec(question) ?? assert.fail(question);
  const { data } = answerOf(call);
  const isEmpty = question.split("\n| (none)\n").length === 4;
  return data === undefined || isEmpty ? [] : [data[id as keyof typeof data].met];
}
