/** Reasons why a sampled token has no teacher's logprob (`alidade score`, and `teacher` of a run or a service). */
import type { Meaning } from "./meaning.ts";

export const teacherReasons = {
  other_policy: {
    what: "Another model than the policy sampled it, and its ids may be those of another tokenizer.",
    cure: null,
  },
  misaligned: { what: "Its ids are not those that the engine sampled, so a score would be of other words.", cure: null },
  planted_placeholder: { what: "Its tokens hold the pad of a picture where no picture is.", cure: null },
  images: {
    what: "Its context shows a picture that the teacher was not given.",
    cure: "serve a teacher that reads pictures with vLLM and `--enable-scale-out`; `alidade doctor` says whether yours takes them",
  },
  over_context: {
    what: "It stands behind the teacher's longest context.",
    cure: "serve the teacher with a larger `--max-model-len`",
  },
  no_logprob: { what: "The teacher's engine gave no logprob for it.", cure: "`alidade doctor` looks at the engine" },
  not_answered: {
    what: "The teacher did not answer in the tries and the time that `teacher` of the run or the service allows.",
    cure: "`alidade score` asks again, for a finished run",
  },
  refused: { what: "The teacher's engine refused the rollout.", cure: "the run's notes hold its answer; `alidade score` asks again" },
  other_tokenizer: {
    what: "The teacher has another tokenizer than the model that sampled it.",
    cure: "take a teacher of the policy's own family",
  },
} as const satisfies Record<string, Meaning>;
