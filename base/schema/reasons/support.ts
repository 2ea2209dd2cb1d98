/** Reasons why a call that was sampled with `top_p`, `top_k` or `min_p` has no record of the tokens that these kept. */
import type { Meaning } from "./meaning.ts";

export const supportReasons = {
  not_told: {
    what: "The engine did not tell it.",
    cure: "serve the model with SGLang 0.5.23, or start vLLM with `--logprobs-mode processed_logprobs`",
  },
  unbounded: {
    what: "The engine tells it only for a `top_k` within its limit, and the call had none.",
    cure: "add a `top_k` to the sampling (20 fits each of these engines)",
  },
  not_asked: {
    what: "Alidade does not ask for it here: a grammar, a raw prompt, pictures, or a request that wants logprobs itself.",
    cure: "let the harness ask for chat turns without logprobs",
  },
  cut_short: {
    what: "The engine lists fewer tokens than were kept at some place.",
    cure: "start vLLM with a `--max-logprobs` above the `top_k` of the sampling",
  },
  misfit: {
    what: "What the engine told does not fit the tokens of the call.",
    cure: "report it to the engine's project: a sampled token was not among those that were kept, or their probabilities do not add up to 1",
  },
  not_kept: {
    what: "The session's store keeps no bytes beside its logs, the session has filled its 256 MiB of such numbers, or the sets of the call have more than 8 million tokens together.",
    cure: "record to a folder, and take a smaller `top_k`",
  },
} as const satisfies Record<string, Meaning>;
