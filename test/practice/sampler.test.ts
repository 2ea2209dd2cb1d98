import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "../../practice/model/random.ts";
import { type LogprobsMode, type SamplingParameters, TokenSampler } from "../../practice/model/sampler.ts";

const logits = Float64Array.from([2, 1, 0, -1, 3]);
const none: SamplingParameters = {
  temperature: 1,
  top_p: 1,
  top_k: 0,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
  logit_bias: new Map(),
  top_logprobs: 0,
};

function sampler(
  parameters: Partial<SamplingParameters> = {},
  mode: LogprobsMode = "raw_logprobs",
  promptIds: number[] = [],
): TokenSampler {
  return new TokenSampler({ parameters: { ...none, ...parameters }, random: new SeededRandom(1), mode, vocabularySize: 5, promptIds });
}

function softmax(scores: number[]): number[] {
  const weights = scores.map(Math.exp);
  const sum = weights.reduce((one, other) => one + other);
  return weights.map((weight) => weight / sum);
}

function frequencies(one: TokenSampler, draws: number, allowed: Uint8Array | null = null): number[] {
  const counts = [0, 0, 0, 0, 0];
  for (let draw = 0; draw < draws; draw += 1) {
    const { id } = one.sample(logits, allowed);
    counts[id] = (counts[id] as number) + 1;
  }
  return counts.map((count) => count / draws);
}

function assertClose(actual: number[], expected: number[], tolerance: number): void {
  for (const [at, value] of expected.entries())
    assert.ok(Math.abs((actual[at] as number) - value) < tolerance, `${actual} is not ${expected}`);
}

test("tokens are drawn as often as their probability says, at every temperature", () => {
  // 40 000 draws with a fixed seed: the standard error is below 0.0025.
  assertClose(frequencies(sampler(), 40_000), softmax([...logits]), 0.01);
  assertClose(frequencies(sampler({ temperature: 2 }), 40_000), softmax([...logits].map((logit) => logit / 2)), 0.01);
});

test("raw logprobs know the mask and not the temperature, processed ones know both", () => {
  const allowed = Uint8Array.of(1, 1, 0, 0, 0);
  const raw = sampler({ temperature: 2, top_logprobs: 5 }).sample(logits, allowed);
  const processed = sampler({ temperature: 2, top_logprobs: 5 }, "processed_logprobs").sample(logits, allowed);
  const at = (sampled: typeof raw) => [0, 1, 2].map((id) => sampled.top.find((one) => one.id === id)?.logprob ?? Number.NaN);
  assertClose(at(raw).slice(0, 2).map(Math.exp), softmax([2, 1]), 1e-12);
  assertClose(at(processed).slice(0, 2).map(Math.exp), softmax([1, 0.5]), 1e-12);
  assert.equal(at(raw)[2], -9999, "JSON has no minus infinity");
});

test("the only token that is left has a logprob of exactly 0", () => {
  const { id, logprob } = sampler().sample(logits, Uint8Array.of(0, 0, 0, 1, 0));
  assert.equal(id, 3);
  assert.ok(Object.is(logprob, 0));
});

test("temperature 0 takes the likeliest, and reports its true logprob", () => {
  for (const mode of ["raw_logprobs", "processed_logprobs"] as const) {
    const { id, logprob } = sampler({ temperature: 0 }, mode).sample(logits, null);
    assert.equal(id, 4);
    assert.ok(Math.abs(Math.exp(logprob) - (softmax([...logits])[4] as number)) < 1e-12);
  }
});

test("top_k, top_p and min_p leave the likeliest", () => {
  const renormalised = softmax([2, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, 3]);
  for (const parameters of [{ top_k: 2 }, { top_p: 0.8 }, { min_p: 0.3 }, { top_k: 3, top_p: 0.85 }])
    assertClose(frequencies(sampler(parameters), 20_000), renormalised, 0.015);
  const { top } = sampler({ top_k: 2, top_logprobs: 5 }, "processed_logprobs").sample(logits, null);
  assert.deepEqual(
    top
      .filter(({ logprob }) => logprob > -9999)
      .map(({ id }) => id)
      .sort(),
    [0, 4],
  );
});

test("a bias and the penalties move the draw and not the raw logprob", () => {
  const biased = sampler({ logit_bias: new Map([[3, 100]]) }).sample(logits, null);
  assert.equal(biased.id, 3);
  assert.ok(biased.logprob < -3);
  const forgetful = sampler({ presence_penalty: 2, frequency_penalty: 2, temperature: 0 });
  assert.deepEqual(
    [1, 2, 3].map(() => forgetful.sample(logits, null).id),
    [4, 0, 1],
  );
  assert.equal(sampler({ repetition_penalty: 4, temperature: 0 }, "raw_logprobs", [4]).sample(logits, null).id, 0);
});

test("the likeliest are listed after the sampled one, which is never twice there", () => {
  const { id, top } = sampler({ top_logprobs: 2 }).sample(logits, null);
  assert.equal(top[0]?.id, id);
  assert.equal(new Set(top.map((one) => one.id)).size, top.length);
});
