/** What servers say of sampled tokens beside ids: their texts, their bytes, and the likeliest others. */
import type { JsonObject } from "../../base/schema/message.ts";
import type { SampledToken } from "../../base/schema/sampled-token.ts";
import { isMeasured } from "./alignment.ts";

/** What stands for a byte that is no character. */
const replacement = "\u{fffd}";

/** As a server says it of one token: the chosen one, or an alternative. */
export type SaidToken = { text: unknown; bytes?: unknown; logprob: unknown };

/** `top`: how many alternatives were asked for. A server may list more. */
export function sampledToken(id: number | null, said: SaidToken, others: readonly SaidToken[], top: number): SampledToken {
  return {
    id,
    ...textAndBytes(said),
    logprob: isMeasured(said.logprob) ? said.logprob : null,
    top: others.slice(0, top).flatMap((other) => (isMeasured(other.logprob) ? [{ ...textAndBytes(other), logprob: other.logprob }] : [])),
  };
}

/** An entry of `logprobs.content`, as OpenAI's chat has it. */
export function fromChatEntry(id: number | null, entry: JsonObject, top: number): SampledToken {
  const others = Array.isArray(entry.top_logprobs) ? entry.top_logprobs.filter(isObject) : [];
  return sampledToken(id, said(entry), others.map(said), top);
}

/**
 * Servers print a character of several tokens at its last one, whose bytes are then those of all of them. Behind a part of
 * a character the bytes of what begins with such a character are therefore unknown. `before`: the token before the first.
 */
export function withOwnBytes(tokens: readonly SampledToken[], before?: SampledToken): SampledToken[] {
  return tokens.map((token, at) => {
    const isBehindPart = (tokens[at - 1] ?? before)?.bytes === null;
    return isBehindPart ? { ...withoutForeign(token), top: token.top.map(withoutForeign) } : token;
  });
}

function withoutForeign<Token extends Pick<SampledToken, "text" | "bytes">>(token: Token): Token {
  return /^[\0-\x7f]/.test(token.text) ? token : { ...token, bytes: null };
}

function said({ token, bytes, logprob }: JsonObject): SaidToken {
  return { text: token, bytes, logprob };
}

/**
 * Several servers make the bytes from the text, so a part of a character has no bytes or those of U+FFFD. These are not its
 * own. Any other text is its bytes.
 */
function textAndBytes({ text, bytes }: SaidToken): Pick<SampledToken, "text" | "bytes"> {
  const shown = typeof text === "string" ? text.toWellFormed() : "";
  if (isBytes(bytes) && !Buffer.from(bytes).includes(replacement)) return { text: shown, bytes };
  return { text: shown, bytes: shown === "" || shown.includes(replacement) ? null : [...Buffer.from(shown)] };
}

function isBytes(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((one) => Number.isInteger(one) && one >= 0 && one <= 255);
}

function isObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
