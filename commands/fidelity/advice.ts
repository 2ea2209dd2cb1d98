/** What a person can do about contexts that part and samples that are not trained. */
import type { EdgeCause, ExclusionReason, UncountedReason } from "../../schema/trajectory.ts";

type Cause = EdgeCause;
type Reason = (typeof ExclusionReason.options)[number] | "grammar" | "left_out_class" | "not_selected" | "over_length";

const continuity =
  "use token continuity: `--continuity auto` and an engine that takes tokens in (`alidade doctor` says whether yours does)";

/** By cause of a branch: what happened, and what to do about it. */
export const causeAdvice: Record<Cause, { what: string; todo: string }> = {
  retokenised: {
    what: "the same words came back in other tokens than were sampled",
    todo: `${continuity}; or take rows with \`--select tolerant\`; their later logprobs belong to other tokens of the same text`,
  },
  reasoning_dropped: {
    what: "the harness or the chat template leaves out earlier reasoning",
    todo: "it is so in deployment too, and a branch a turn is its price; `--restore full` keeps the reasoning, and with continuity the conversation stays one sequence, and a template flag may do the same (such as Qwen's `chat_template_kwargs`)",
  },
  arguments_reserialised: {
    what: "tool arguments came back in another spelling",
    todo: "leave `restore` at its default, which undoes it in turns that it recognises; a harness that strips our tool-call ids hides them",
  },
  arguments_changed: {
    what: "the harness changed a tool call's arguments (a key added, a path made absolute)",
    todo: "tell the model of the form that the harness wants, in its tool's schema, so that it samples that form itself",
  },
  tool_calls_changed: {
    what: "tool calls came back as text, in another order, under another name, or fewer",
    todo: "look for a setting of the harness that keeps calls native; a server's parser that reads more calls than the harness does has the same effect",
  },
  injected: {
    what: "the harness put words of its own into what had been said before",
    todo: "look for a setting of the harness that appends reminders at the end, or turns them off",
  },
  turn_dropped: {
    what: "the harness threw a turn away, often after a format error",
    todo: "nothing is lost: the turn is a leaf and is trained; many of them mean that the model does not know the harness's format yet",
  },
  edited: {
    what: "the text of an earlier turn or message was changed",
    todo: "read the two sides with `alidade show`: it is the harness's doing",
  },
  compacted: {
    what: "the history was summarised or cut",
    todo: "it is meant so; a larger context in the harness's configuration, or auto-compaction turned off, makes it rarer",
  },
  truncated: {
    what: "a turn was cut off by its length, and the template closes it otherwise",
    todo: "raise the limit on tokens of one answer, in the harness or by forced sampling",
  },
  system_changed: {
    what: "the leading instructions changed",
    todo: "look for a clock, a git status or a random id in the system prompt, and fix it in the harness's configuration",
  },
  tools_changed: {
    what: "the list of tools changed",
    todo: "tools that connect late (MCP) or appear by mode do that: connect them before the first turn, or turn them off",
  },
  other_tokenizer: {
    what: "the session went on at an engine with another tokenizer",
    todo: "give engines of one model the same tokenizer, or keep them apart by routes",
  },
  stop_string: {
    what: "a stop string ended an earlier turn: the model sampled it, and the engine cut it out of the text that the harness sends back",
    todo: "let the harness do without stop strings, or keep them in the context with `--restore full`",
  },
  re_rendered: {
    what: "the template renders an earlier turn in another way than the model sampled it",
    todo: continuity,
  },
  unknown: {
    what: "the tokens differ, and the engine could not decode them",
    todo: "an engine with a detokenize route lets Alidade say what changed",
  },
};

/** By reason of exclusion, where something can be done about it. */
export const reasonAdvice: Partial<Record<Reason, string>> = {
  damaged: "the session's log holds these calls no more: `alidade show` names the lines",
  no_logprob: "the engine gave no logprob for a token: see `alidade doctor`",
  no_token_ids: "the engine gave no token ids: see `alidade doctor`",
  misaligned: "ids, logprobs and counts of the engine disagree: see `alidade doctor`",
  unattributed_policy: "weights changed in the middle of a sample: pause with `drain` or `abort` before an update",
  other_policy: "sampled by a model that the session does not train: `model` and `engines[].purpose` say which one that is",
  undelivered: "the harness never got these turns: raise its time limit, or look for an engine that is too slow",
  grammar: "sampled under a grammar: `--allow-grammar` takes them, for trainers that know the mask",
  over_length: "longer than `--max-tokens`",
  auxiliary: "calls about the session, not the task: `train_classes` says which kinds are trained",
};

/** By reason why the number of tokens that a call sampled is unknown. */
export const uncountedAdvice: Record<(typeof UncountedReason.options)[number], string> = {
  lost_in_flight: "the proxy was killed while the engine sampled: nothing of it is in any count",
  broken_off: "the answer broke off or was stopped: what the engine had sampled and not sent is in no count",
  not_counted: "the engine gave neither ids nor a count",
  damaged: "the line of the session's log that has them cannot be read",
};
