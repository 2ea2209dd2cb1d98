/**
 * Whether a generation that a weight update interrupts can go on from its own tokens, and if not, why. It goes on as another
 * request, whose prompt ends with the tokens that were kept: what counts from the first sampled token on would be counted
 * anew, and so such a request cannot go on.
 */
import { isUnderGrammar, type SampleRequest } from "../../../engines/index.ts";
import type { EngineLease } from "../../pool/engine-lease.ts";

/** A sentence's end: "it …"; null: it can go on. */
export function whyNotOn(lease: EngineLease, request: Omit<SampleRequest, "model">): string | null {
  const { engine, facts } = lease;
  if (request.live === true) return "is read live, and what its client has seen cannot be taken back";
  if (!facts.token_in || !engine.detokenize) return "is at an engine that takes no prompt as token ids";
  if (facts.routing) return "is answered in one piece, for the engine to tell which experts its tokens took";
  if (lease.isPinned) return "belongs to a session that is pinned to its weights";
  return whyBoundToItsStart(lease, request);
}

function whyBoundToItsStart(
  { engine }: EngineLease,
  { prompt, messages, sampling, ...request }: Omit<SampleRequest, "model">,
): string | null {
  if (prompt) return "has a raw prompt";
  if (isUnderGrammar({ ...request, sampling }, engine)) return "is under a grammar";
  if (messages.some(({ parts }) => parts.some(isNoText))) return "has an image or another file in its prompt";
  const counted = countedFromTheStart.find((name) => isSet(sampling[name]));
  return counted === undefined ? null : `counts from its first token on (\`${counted}\`)`;
}

/** Parameters whose effect depends on what was sampled before, and engines count only what the request itself sampled. */
const countedFromTheStart = ["stop", "presence_penalty", "frequency_penalty", "min_tokens", "thinking_token_budget"] as const;

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== 0 && !(Array.isArray(value) && value.length === 0);
}

/** Beside what is no text engines ignore token ids. */
function isNoText(part: SampleRequest["messages"][number]["parts"][number]): boolean {
  if (part.type === "tool_result") return part.content.some(({ type }) => type !== "text");
  return !["text", "reasoning", "tool_call"].includes(part.type);
}
