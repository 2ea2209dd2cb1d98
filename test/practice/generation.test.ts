import assert from "node:assert/strict";
import { test } from "node:test";
import { type GeneratedToken, generate, newPolicy, type PracticePolicy, score } from "../../practice/generation.ts";
import { ChoiceGrammar } from "../../practice/grammar/choice-grammar.ts";
import { logSoftmax } from "../../practice/model/sampler.ts";
import { randomShape } from "../../practice/model/weights.ts";
import { decodeBytes, encode, endOfTurn, vocabularySize } from "../../practice/tokenizer/vocabulary.ts";

const plain = {
  temperature: 1,
  top_p: 1,
  top_k: 0,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
  logit_bias: new Map<number, number>(),
  top_logprobs: 0,
};
const forever = new AbortController().signal;
/** Longer than the window and the sinks together, over many blocks. */
const longText = Array.from({ length: 60 }, (_, line) => `${line}: the tests of module ${line * 7} fail with code ${line * 31}\n`).join("");

type Options = { seed?: number; maxTokens?: number; choices?: string[]; temperature?: number; signal?: AbortSignal };

async function sample(
  policy: PracticePolicy,
  promptIds: number[],
  options: Options = {},
): Promise<{ tokens: GeneratedToken[]; cached: number }> {
  let cached = -1;
  const request = {
    promptIds,
    sampling: { ...plain, temperature: options.temperature ?? 1, logit_bias: new Map(options.choices ? [] : [[endOfTurn, -100]]) },
    maxTokens: options.maxTokens ?? 60,
    seed: options.seed ?? 1,
    stopTokenIds: [],
    choices: options.choices ?? null,
    form: null,
    signal: options.signal ?? forever,
  };
  const tokens = await Array.fromAsync(
    generate(policy, request, (count) => {
      cached = count;
    }),
  );
  return { tokens, cached };
}

const idsOf = (tokens: GeneratedToken[]) => tokens.map(({ id }) => id);

/** Largest difference between what was recorded and what teacher forcing says, in a policy that has read nothing yet. */
async function scoringError(seed: number, promptIds: number[], tokens: GeneratedToken[]): Promise<number> {
  const scores = await score(newPolicy({ seed }), [...promptIds, ...idsOf(tokens)], 0, forever);
  return Math.max(...tokens.map(({ logprob }, at) => Math.abs(logprob - (scores[promptIds.length + at]?.logprob ?? Number.NaN))));
}

test("the same seeds sample the same tokens, other seeds others", async () => {
  const prompt = encode("Once upon a time");
  const first = await sample(newPolicy({ seed: 5 }), prompt, { seed: 1 });
  assert.deepEqual((await sample(newPolicy({ seed: 5 }), prompt, { seed: 1 })).tokens, first.tokens);
  assert.notDeepEqual(idsOf((await sample(newPolicy({ seed: 5 }), prompt, { seed: 2 })).tokens), idsOf(first.tokens));
  assert.notDeepEqual(idsOf((await sample(newPolicy({ seed: 6 }), prompt, { seed: 1 })).tokens), idsOf(first.tokens));
});

test("the distribution is neither flat nor a point, and depends on what was read long ago", async () => {
  const { tokens } = await sample(newPolicy({ seed: 1 }), encode(longText), { maxTokens: 200 });
  const mean = tokens.reduce((sum, { logprob }) => sum + logprob, 0) / tokens.length;
  assert.ok(mean < -3 && mean > -Math.log(vocabularySize), `mean logprob ${mean}`);
  const far = encode(longText);
  const near = encode(`${longText.slice(0, -150)}X${longText.slice(-149)}`);
  const [one, other] = await Promise.all([far, near].map((ids) => score(newPolicy({ seed: 1 }), ids, 0, forever)));
  assert.notEqual(one?.at(-1)?.logprob, other?.at(-1)?.logprob);
});

test("teacher forcing gives the logprobs that sampling recorded, across the window and the blocks", async () => {
  const prompt = encode(longText);
  assert.ok(prompt.length > 4 * (randomShape.window + randomShape.sinks));
  const { tokens } = await sample(newPolicy({ seed: 3 }), prompt, { maxTokens: 100 });
  assert.ok((await scoringError(3, prompt, tokens)) < 1e-9);
});

test("a wrong token in the prompt shows in the scores", async () => {
  const prompt = encode("Read the file and fix the bug.");
  const { tokens } = await sample(newPolicy({ seed: 3 }), prompt);
  const wrong = [...prompt.slice(0, -1), (prompt.at(-1) as number) + 1];
  assert.ok((await scoringError(3, wrong, tokens)) > 1e-3);
});

test("the prefix cache spends less and changes nothing", async () => {
  const policy = newPolicy({ seed: 4 });
  const prompt = encode(longText);
  const cold = await sample(policy, prompt, { seed: 9 });
  const warm = await sample(policy, prompt, { seed: 9 });
  assert.equal(cold.cached, 0);
  assert.ok(warm.cached > prompt.length - 64 && warm.cached < prompt.length, `${warm.cached} of ${prompt.length}`);
  assert.deepEqual(warm.tokens, cold.tokens, "to the last bit");
  const next = [...prompt, ...idsOf(cold.tokens), ...encode("\nand then?")];
  const turn = await sample(policy, next, { seed: 10 });
  assert.ok(turn.cached > prompt.length, "what was sampled is found again too");
  assert.deepEqual(turn.tokens, (await sample(newPolicy({ seed: 4 }), next, { seed: 10 })).tokens);
  assert.ok((await scoringError(4, next, turn.tokens)) < 1e-9);
});

test("prompts that part share what they have in common and no more", async () => {
  const policy = newPolicy({ seed: 4 });
  const one = encode(`${longText}one`);
  const other = encode(longText.replace("30: the", "30: xhe"));
  await sample(policy, one);
  const { tokens, cached } = await sample(policy, other, { seed: 2 });
  const shared = other.findIndex((id, at) => id !== one[at]);
  assert.equal(cached, shared - (shared % 32));
  assert.deepEqual(tokens, (await sample(newPolicy({ seed: 4 }), other, { seed: 2 })).tokens);
});

test("a block that says the same in another place is another block", async () => {
  const block = Array.from({ length: 32 }, (_, at) => at + 65);
  const prompt = [...block, ...block, ...block, 10];
  const policy = newPolicy({ seed: 4 });
  await sample(policy, [...block, 10]);
  const { tokens, cached } = await sample(policy, prompt);
  assert.equal(cached, 32);
  assert.ok((await scoringError(4, prompt, tokens)) < 1e-9);
});

test("requests that interleave say what they say alone, and read a shared prompt once", async () => {
  const policy = newPolicy({ seed: 7 });
  const prompts = [encode(longText), encode(`${longText}again`), encode("something else")] as const;
  const together = await Promise.all(prompts.map((prompt, at) => sample(policy, prompt, { seed: at })));
  for (const [at, prompt] of prompts.entries()) {
    const alone = await sample(newPolicy({ seed: 7 }), prompt, { seed: at });
    assert.deepEqual(together[at]?.tokens, alone.tokens);
    assert.ok((await scoringError(7, prompt, alone.tokens)) < 1e-9);
  }
  assert.ok(
    (together[0]?.cached ?? 0) + (together[1]?.cached ?? 0) > prompts[0].length / 2,
    "one of the two took over what the other read",
  );
});

test("a reader that is cancelled leaves nothing behind that another one waits for", async () => {
  const policy = newPolicy({ seed: 7 });
  const prompt = encode(longText);
  const leaves = new AbortController();
  // A request that waits for ever is a failure, and not a test that hangs.
  const patience = AbortSignal.timeout(60_000);
  const cancelled = sample(policy, prompt, { signal: leaves.signal });
  const waiting = sample(policy, prompt, { signal: patience });
  setImmediate(() => leaves.abort());
  await assert.rejects(cancelled, { name: "AbortError" });
  assert.equal((await waiting).tokens.length, 60);
});

test("a choice yields one of its texts, with chosen and forced tokens told apart by their logprobs", async () => {
  const policy = newPolicy({ seed: 1 });
  const call = (command: string) =>
    `Let me look at it.\n<tool_call>\n{"name": "bash", "arguments": {"command": "${command}"}}\n</tool_call>`;
  const choices = [call("ls -la"), call("cat src/index.js && npm test"), "All tests pass now. 漢字", "All tests pass now"];
  const prompt = encode("<|im_start|>user\nfix the bug<|im_end|>\n<|im_start|>assistant\n");
  const seen = new Set<string>();
  for (let seed = 0; seed < 40; seed += 1) {
    const { tokens } = await sample(policy, prompt, { seed, choices, maxTokens: 500 });
    const text = Buffer.from(decodeBytes(idsOf(tokens).slice(0, -1))).toString();
    assert.ok(choices.includes(text), text);
    assert.equal(tokens.at(-1)?.id, endOfTurn);
    seen.add(text);
    assert.ok(tokens.filter(({ logprob }) => logprob < 0).length >= 5, `${text} was hardly chosen`);
    await assertMaskedLogprobs(prompt, tokens, choices);
  }
  assert.ok(seen.size >= 2, "no text is the only one");
});

/** Recomputes every logprob under the mask, and that a token is at exactly 0 if and only if it was the only one. */
async function assertMaskedLogprobs(prompt: number[], tokens: GeneratedToken[], choices: string[]): Promise<void> {
  const policy = newPolicy({ seed: 1 });
  const past = policy.transformer.begin();
  const logprobs = new Float64Array(vocabularySize);
  for (const id of prompt.slice(0, -1)) policy.transformer.step(id, past, false);
  const grammar = new ChoiceGrammar(choices);
  let last = prompt.at(-1) as number;
  for (const { id, logprob } of tokens) {
    policy.transformer.step(last, past, true);
    const masked = policy.transformer.logits.map((logit, at) => (grammar.allowed[at] === 1 ? logit : Number.NEGATIVE_INFINITY));
    logSoftmax(masked, logprobs);
    assert.ok(Math.abs(logprob - (logprobs[id] as number)) < 1e-9);
    assert.equal(logprob === 0, grammar.allowed.reduce((sum, one) => sum + one, 0) === 1);
    grammar.advance(id);
    last = id;
  }
}
