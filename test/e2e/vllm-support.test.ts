/**
 * Which tokens vLLM's sampling kept, from vLLM itself with processed logprobs: the recorded logprobs are those of a fresh score,
 * renormalised over the recorded sets.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { engineNamed } from "../../engines/registry.ts";
import { taughtModel } from "../interop/vllm/place.ts";
import { startOwnVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";
import { bashTool, neutral, request } from "./vllm-samples.ts";

/** vLLM lists at most so many tokens of a place, by default. */
const top_k = 20;

test("renormalised over the kept tokens, a fresh score is what was recorded; over other sets it is not", {
  timeout: 900_000,
}, async (t) => {
  if (!(await need(t, "vllm"))) return;
  await using vllm = await startOwnVllm(taughtModel(), t.signal, ["--logprobs-mode", "processed_logprobs"]);
  const engine = engineNamed("vllm").create({ baseUrl: vllm.url, apiKey: null });
  try {
    const facts = await engine.probe(t.signal);
    // Lists have 20 tokens. With this `top_k` no place is left for a token that was cut, but the sum of the others proves the set.
    assert.deepEqual([facts.missing, facts.logprob_semantics, facts.support], [null, "processed", { most: top_k - 1, bounded: false }]);
    let [worst, shuffled, count, cut] = [0, 0, 0, 0];
    for (let seed = 0; seed < 6; seed++) {
      const sampling = { ...neutral, top_p: 0.9, top_k, max_tokens: 64, seed };
      const asked = request(vllm, { sampling, tools: [bashTool], support: true, live: seed % 2 === 1 });
      const events = await Array.fromAsync(engine.sample(asked, t.signal));
      const tokens = events.filter((event) => event.type === "tokens");
      const [ids, logprobs, sets] = [
        tokens.flatMap((one) => one.token_ids),
        tokens.flatMap((one) => one.logprobs),
        tokens.flatMap((one) => one.support ?? []),
      ];
      const prompt = events.find((event) => event.type === "prompt")?.token_ids ?? [];
      assert.deepEqual([logprobs.length, sets.length], [ids.length, ids.length]);
      const scored = await engine.scoreTop?.(vllm.model, [...prompt, ...ids], top_k, t.signal);
      assert.ok(scored);
      for (const [at, id] of ids.entries()) {
        const [set, place, recorded] = [sets[at], scored[prompt.length + at], logprobs[at]];
        assert.ok(Array.isArray(set) && place && typeof recorded === "number", `token ${at} of seed ${seed}: ${String(set)}`);
        const logprobOf = new Map(place.top.ids.map((one, rank) => [one, place.top.logprobs[rank] ?? Number.NaN]));
        const over = (among: readonly number[]): number =>
          (logprobOf.get(id) ?? Number.NaN) - Math.log(among.reduce((sum, one) => sum + Math.exp(logprobOf.get(one) ?? Number.NaN), 0));
        worst = Math.max(worst, Math.abs(over(set) - recorded));
        // The set of another place, with the sampled token put into it.
        const other = sets[(at + 1) % sets.length];
        assert.ok(Array.isArray(other));
        const wrong = [...new Set([id, ...other.filter((one: number) => logprobOf.has(one))])];
        shuffled = Math.max(shuffled, Math.abs(over(wrong) - recorded));
        count++;
        if (set.length > 1) cut++;
      }
    }
    t.diagnostic(
      `max |recorded - renormalised| = ${worst.toExponential(2)} nats over ${count} tokens, ${cut} of them with a choice; shuffled ${shuffled.toFixed(2)}`,
    );
    assert.ok(cut > 10, "a set of one token proves nothing");
    assert.ok(worst <= 1e-3, `${worst}`);
    assert.ok(shuffled > 0.1, `${shuffled}: with the sets of other tokens it must be another number`);
  } finally {
    await engine.close();
  }
});
