/** What became of a call: how it ended, what of it was counted, why its context parts from the one before, why it was rendered. */
import type { Meaning } from "./meaning.ts";

/** How a call's turn reached its harness. */
export const callOutcomes = {
  delivered: { what: "The harness got the whole turn.", cure: null },
  partial: { what: "The harness used only a part of the turn.", cure: "look for a limit of the harness on the length of a turn" },
  undelivered: { what: "The harness never got the turn.", cure: "raise the harness's time limit, or find out why the engine is slow" },
  failed: { what: "The call ended with an error.", cure: "`alidade show` prints it" },
} as const satisfies Record<string, Meaning>;

/** Why a call sampled an unknown number of tokens, beside those that it has. */
export const uncountedReasons = {
  lost_in_flight: { what: "The proxy was killed while the engine sampled; nothing of the call is in any count.", cure: null },
  broken_off: { what: "The answer broke off or was stopped; what the engine had sampled and not sent is in no count.", cure: null },
  resampled: {
    what: "The answer to an earlier try was lost and the engine was asked again; what it had sampled then is in no count.",
    cure: "find out what closes the connections between proxy and engine; without `resample_lost` such a call fails",
  },
  interrupted: {
    what: "A weight update interrupted it; what the engine had sampled and not sent, and what was dropped behind the place where it went on, is in no count.",
    cure: null,
  },
  not_counted: {
    what: "The engine gave neither token ids nor a count.",
    cure: "`alidade doctor` says what the engine gives",
  },
  damaged: { what: "The line of the session's log that has them cannot be read.", cure: "`alidade show` names the line" },
} as const satisfies Record<string, Meaning>;

const continuity =
  "use token continuity: `--continuity auto` and an engine that takes tokens in (`alidade doctor` says whether yours does)";

/** Why a call's prompt does not continue its parent token for token. */
export const edgeCauses = {
  retokenised: {
    what: "The same words came back in other tokens than were sampled.",
    cure: `${continuity}; or take rows with \`--select tolerant\`, whose later logprobs belong to other tokens of the same text`,
  },
  reasoning_dropped: {
    what: "The harness or the chat template leaves out earlier reasoning.",
    cure: "it is so in deployment too, and a branch a turn is its price; `--restore full` keeps the reasoning, and with continuity the conversation stays one sequence, and a template flag may do the same (such as Qwen's `chat_template_kwargs`)",
  },
  arguments_reserialised: {
    what: "Tool arguments came back in another spelling.",
    cure: "leave `restore` at its default, which undoes it in turns that it recognises; a harness that strips our tool-call ids hides them",
  },
  arguments_changed: {
    what: "The harness changed a tool call's arguments (a key added, a path made absolute).",
    cure: "tell the model of the form that the harness wants, in its tool's schema, so that it samples that form itself",
  },
  tool_calls_changed: {
    what: "Tool calls came back as text, in another order, under another name, or fewer.",
    cure: "look for a setting of the harness that keeps calls native; a server's parser that reads more calls than the harness does has the same effect",
  },
  injected: {
    what: "The harness put words of its own into what had been said before.",
    cure: "look for a setting of the harness that appends reminders at the end, or turns them off",
  },
  history_cleared: {
    what: "The harness cleared or shortened results of earlier tool calls to save context.",
    cure: "it is so in deployment too, and a branch each time is its price; a setting of the harness that keeps more of them, or a larger context, makes it rarer",
  },
  turn_dropped: {
    what: "The harness threw a turn away, often after a format error.",
    cure: "nothing is lost: the turn is a leaf and is trained; many of them mean that the model does not know the harness's format yet",
  },
  edited: {
    what: "The text of an earlier turn or message was changed.",
    cure: "read the two sides with `alidade show`: it is the harness's doing",
  },
  truncated: {
    what: "A turn was cut off by its length, and the template closes it otherwise.",
    cure: "raise the limit on tokens of one answer, in the harness or by forced sampling",
  },
  compacted: {
    what: "The history was summarised or cut.",
    cure: "it is meant so; a larger context in the harness's configuration, or auto-compaction turned off, makes it rarer",
  },
  system_changed: {
    what: "The leading instructions changed.",
    cure: "look for a clock, a git status or a random id in the system prompt, and fix it in the harness's configuration",
  },
  tools_changed: {
    what: "The list of tools changed.",
    cure: "tools that connect late (MCP) or appear by mode do that: connect them before the first turn, or turn them off",
  },
  other_tokenizer: {
    what: "The session went on at an engine with another tokenizer.",
    cure: "give engines of one model the same tokenizer, or keep them apart by routes",
  },
  stop_string: {
    what: "A stop string ended an earlier turn: the model sampled it, and the engine cut it out of the text that the harness sends back.",
    cure: "let the harness do without stop strings, or keep them in the context with `--restore full`",
  },
  re_rendered: { what: "The template renders an earlier turn in another way than the model sampled it.", cure: continuity },
  unknown: {
    what: "The tokens differ, and they could not be decoded.",
    cure: "an engine with a detokenize route lets Alidade say what changed",
  },
} as const satisfies Record<string, Meaning>;

/** Why a call of a session with continuity was rendered anew: what makes it no continuation of an earlier call's tokens. */
export const renderCauses = {
  first_turn: { what: "No turn of the session is in the request.", cure: null },
  unknown_turn: {
    what: "An assistant turn was not said in this session, or not in this place.",
    cure: "let the harness send back the turns that it got",
  },
  not_restored: { what: "The session's `restore` is off.", cure: "leave `restore` at its default" },
  edited: { what: "The text of an earlier turn or message was changed.", cure: edgeCauses.edited.cure },
  compacted: { what: "The history was summarised or cut.", cure: edgeCauses.compacted.cure },
  history_cleared: { what: edgeCauses.history_cleared.what, cure: edgeCauses.history_cleared.cure },
  system_changed: { what: "The leading instructions changed.", cure: edgeCauses.system_changed.cure },
  tools_changed: { what: "The list of tools changed.", cure: edgeCauses.tools_changed.cure },
  settings_changed: {
    what: "Effort, template arguments, response format or tool choice changed, and a template may print them.",
    cure: "let the harness keep them from call to call",
  },
  reasoning_dropped: {
    what: "The harness or the template drops earlier reasoning, under the default `restore`.",
    cure: "`--restore full` keeps the reasoning",
  },
  truncated: { what: "The earlier turn was cut off within a thought or a tool call.", cure: edgeCauses.truncated.cure },
  stop_string: { what: "A stop string ended the earlier turn.", cure: edgeCauses.stop_string.cure },
  prefill: { what: "The request ends within a turn.", cure: null },
  images: {
    what: "The request holds an image, and the engine takes no token ids beside one, or did not tell where the earlier ones stand.",
    cure: "serve the model with vLLM 0.33 or newer and `--enable-scale-out`, and leave `relay` at `buffered`",
  },
  planted_placeholder: { what: "The earlier call's tokens hold the pad of a picture where no picture is.", cure: null },
  text_prompt: { what: "The call is a legacy completion, whose prompt is text.", cure: null },
  no_token_ids: { what: "The earlier call has no token ids that hold.", cure: "`alidade doctor` says what the engine gives" },
  no_token_in: { what: "The engine takes no tokens in.", cure: "`alidade doctor` says why" },
  engine_changed: {
    what: "Another engine took the call, with another template or tokenizer.",
    cure: edgeCauses.other_tokenizer.cure,
  },
  other_close: { what: "The turn ended with a token with which the template does not end it.", cure: null },
  no_suffix: {
    what: "The template prints no suffix of its own behind the turn: it leaves calls out, numbers them, moves its tools or refuses the conversation.",
    cure: "use another chat template; `proxy/continuity/templates.md` lists some",
  },
  probe_failed: { what: "The engine's tokenizer route failed.", cure: "`alidade doctor` looks at it" },
} as const satisfies Record<string, Meaning>;
