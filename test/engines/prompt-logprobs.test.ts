/** What vLLM says of a prompt's tokens, in the order of a teacher. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PromptLogprobs, toRankedTokens } from "../../engines/vllm/prompt-logprobs.ts";

test("the likeliest tokens come first, in whatever order the server lists them, and the token itself is one of them or apart", () => {
  const answer = PromptLogprobs.parse([
    null,
    { 7: { logprob: -3, rank: 9 }, 5: { logprob: -2, rank: 2 }, 4: { logprob: -0.5, rank: 1 } },
    { 9: { logprob: -0.5, rank: 1 }, 2: { logprob: -1, rank: 2 } },
    // Two as likely as each other: the server's rank decides, so that the token itself is not counted for one of them.
    { 1: { logprob: -1, rank: 3 }, 3: { logprob: -1, rank: 2 }, 6: { logprob: -0.1, rank: 1 } },
  ]);
  assert.deepEqual(toRankedTokens([8, 7, 9, 1], answer, 2), [
    { logprob: null, top: { ids: [], logprobs: [] } },
    { logprob: -3, top: { ids: [4, 5], logprobs: [-0.5, -2] } },
    { logprob: -0.5, top: { ids: [9, 2], logprobs: [-0.5, -1] } },
    { logprob: -1, top: { ids: [6, 3], logprobs: [-0.1, -1] } },
  ]);
});

test("no answer is no score, and what is no logprob is no candidate", () => {
  const none = { logprob: null, top: { ids: [], logprobs: [] } };
  assert.deepEqual(toRankedTokens([1, 2], null, 3), [none, none]);
  const strange = PromptLogprobs.parse([null, { 1: { logprob: 2, rank: 1 }, 2: { logprob: null }, 3: { logprob: -1, rank: 2 } }]);
  assert.deepEqual(toRankedTokens([1, 2], strange, 3)[1]?.top, { ids: [3], logprobs: [-1] });
});
