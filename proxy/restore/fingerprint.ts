/** Identity of a request: by it match knows that one comes again. */
import { hash } from "node:crypto";
import { canonicalJson } from "../../base/schema/ids.ts";
import type { Message, NeutralRequest } from "../../base/schema/message.ts";
import { grammarFields } from "../../engines/index.ts";
import { messageKey } from "../session/call.ts";

/** What says which form an answer has, and where it ends. */
const formFields = [...grammarFields, "stop", "stop_token_ids"];

/** What makes it the same question to the same model by the same agent. `messages`: restored. */
export function fingerprintOf(identity: {
  dialect: string;
  agent: string;
  request: NeutralRequest;
  messages: Message[];
  toolsHash: string | null;
}): string {
  const { dialect, agent, request, messages, toolsHash } = identity;
  const { model, prompt = null, tool_choice, sampling, native } = request;
  const form = formFields.map((field) => canonicalJson(sampling[field] ?? null));
  // No request can continue an answer that is not stored, and it is not the latest one of a conversation.
  const stored = [native.store !== false, native.conversation_id ?? null];
  // An answer that was not asked for its tokens has none to show, and of several samples each is asked for again in its place.
  const shows = [...(request.token_logprobs ? [request.token_logprobs] : []), ...(native.choice ? [native.choice] : [])];
  const question = [dialect, agent, toolsHash, tool_choice, prompt, form, stored, messages.map(messageKey), ...shows];
  return `${hash("sha256", JSON.stringify(question))} ${model}`;
}

/** Equal for requests that differ only in the model. */
export function questionOf(fingerprint: string): string {
  return fingerprint.split(" ", 1)[0] as string;
}
