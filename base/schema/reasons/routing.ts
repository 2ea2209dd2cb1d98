/** Reasons why a call of a model with experts has no record of the experts that its tokens took. */
import type { Meaning } from "./meaning.ts";

export const routingReasons = {
  not_told: {
    what: "The engine did not tell it.",
    cure: "start vLLM or SGLang with `--enable-return-routed-experts`; a preempted or aborted call has none in any case",
  },
  streamed: {
    what: "Alidade does not ask for experts here: a live session, a raw prompt, or pictures.",
    cure: "leave `relay` at `buffered` for sessions that are trained",
  },
  misfit: {
    what: "What the engine told does not fit the tokens of the call.",
    cure: "report it to the engine's project: it gave other rows, experts that the model does not have, or another encoding",
  },
  no_shape: {
    what: "SGLang tells experts without a shape, and the model's `config.json` with the shape is not on the proxy's machine.",
    cure: "put the `config.json` where it is found: in the folder that SGLang's `--model-path` names, or with `hf download MODEL config.json`",
  },
  rows_lost: {
    what: "SGLang loses experts with a second cache of prompts, with prefill and decode apart, and with pipeline stages; or its `/server_info` does not say whether it has these.",
    cure: "start SGLang without `--enable-hierarchical-cache`, `--enable-lmcache`, `--disaggregation-mode` and `--pp-size`, and let Alidade reach its `/server_info`",
  },
  not_kept: {
    what: "The session's store keeps no bytes beside its logs, or the session has filled its 256 MiB of expert numbers.",
    cure: "record to a folder; name the engine's policy, so that calls share what earlier ones stored; check the agent's prompts: long prompts without a shared part fill the 256 MiB",
  },
} as const satisfies Record<string, Meaning>;
