/** Why it is not on record which experts the tokens of a call took, in a model with experts. */
import type { Meaning } from "./meaning.ts";

export const routingReasons = {
  not_told: {
    what: "The engine did not tell it.",
    cure: "start vLLM with `--enable-return-routed-experts`; a preempted or aborted call has none in any case",
  },
  streamed: {
    what: "Alidade does not ask for experts here: a live session, a raw prompt, or pictures.",
    cure: "leave `relay` at `buffered` for what is trained",
  },
  misfit: {
    what: "What the engine told does not fit the tokens of the call.",
    cure: "report it to the engine: other rows, other experts than the model has, or another encoding",
  },
  not_kept: {
    what: "The store of the session keeps no bytes beside its logs, or the session's calls have filled 1 GiB with it.",
    cure: "record to a folder; look at what the agent sends: a session of long prompts that share nothing fills it",
  },
} as const satisfies Record<string, Meaning>;
