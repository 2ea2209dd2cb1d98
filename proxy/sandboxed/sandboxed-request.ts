/**
 * What a sandboxed client may hand to the engine. The engine has the network that the sandbox has not, and fields of its
 * own that change the prompt or forbid tokens: so images come as `data:` URLs, and of a body's parameters only those
 * reach the engine that every API has. The others are the operator's (`sampling`, `allow_fields`). A body's fields that no
 * dialect maps (`metadata`, `store`, `user`, `kv_transfer_params` …) are recorded and reach no engine in any session.
 */
import { AlidadeError } from "../../base/errors.ts";
import { imagesIn, isStored } from "../../base/media/stored-picture.ts";
import type { Message, NeutralRequest, Sampling } from "../../base/schema/message.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";

/** Parameters that the vendors' own APIs have. They cut or sharpen what the policy says, and none says it in its place. */
const openParameters: ReadonlySet<string> = new Set([
  ...["temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed"],
  ...["presence_penalty", "frequency_penalty", "repetition_penalty"],
  ...["response_format", "reasoning_effort", "parallel_tool_calls"],
]);

/** Throws `request_invalid` naming the first parameter that is the operator's. */
export function assertOpenParameters(
  { allow_fields }: Pick<SessionSpec, "allow_fields">,
  { sampling }: Pick<NeutralRequest, "sampling">,
): void {
  const closed = Object.keys(sampling).find(
    (name) => !openParameters.has(name) && !allow_fields.includes(name) && !isThinkingSwitch(name, sampling),
  );
  if (closed === undefined) return;
  throw new AlidadeError(
    "request_invalid",
    `${closed}: in a sandboxed session this field is the operator's; leave it out (the operator may name it in allow_fields, or force it in sampling).`,
    { param: closed },
  );
}

/** With twenty alternatives a token is fifty times its id and logprob, in memory and in the log; OpenAI's legacy limit is this. */
const mostAlternatives = 5;

/** Throws `request_invalid` for logprobs of more alternatives than a sandboxed client may have listed. */
export function assertFewAlternatives({ token_logprobs }: Pick<NeutralRequest, "token_logprobs">): void {
  if ((token_logprobs?.top ?? 0) > mostAlternatives)
    throw new AlidadeError(
      "request_invalid",
      `top_logprobs: in a sandboxed session at most ${mostAlternatives} alternatives a token are listed, not ${token_logprobs?.top}.`,
      { param: "top_logprobs" },
    );
}

/** Thinking on or off is what `reasoning_effort` says too; Qwen's API has it as `enable_thinking`, which becomes this. */
function isThinkingSwitch(name: string, sampling: Sampling): boolean {
  return name === "chat_template_kwargs" && /^\{"enable_thinking":(?:true|false)\}$/.test(JSON.stringify(sampling[name]));
}

/** Conversations come again with every turn, in the same objects. */
const inside = new WeakSet<Message>();

/** Throws `request_invalid` for an image that the engine would have to fetch. `messages`: as they go to the engine. */
export function assertImagesInside(messages: readonly Message[]): void {
  for (const message of messages) {
    if (inside.has(message)) continue;
    const outside = imageUrlsOf(message).find((url) => !isImageData(url));
    if (outside !== undefined) throw imageOutside(outside, "only data: URLs are passed on");
    inside.add(message);
  }
}

export function imageOutside(url: string, why: string): AlidadeError {
  return new AlidadeError(
    "request_invalid",
    `The image "${url.slice(0, 200)}" is not in the request: in a sandboxed session ${why}. Send the image itself, as data:image/png;base64,… (the operator may name origins to fetch from in fetch_images).`,
    { param: "image_url" },
  );
}

/** URLs of the pictures that are not stored yet. */
export function imageUrlsOf(message: Message): string[] {
  return imagesIn([message]).flatMap((part) => (isStored(part) ? [] : [part.url]));
}

/** A `data:` URL of an image, as every engine takes it. */
export function isImageData(url: string): boolean {
  return /^data:image\/[\w.+-]+;base64,/i.test(url);
}
