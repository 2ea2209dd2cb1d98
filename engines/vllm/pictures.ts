/**
 * Pictures at vLLM, over its routes for disaggregated serving. `render` tells where a picture's pads stand in what chat samples
 * on. `generate` takes ids with one pad a picture, and the pictures beside them as `content_parts`; with `output_mode: "derender"`
 * (0.33) its answer is read as chat's would be. Three requests look right to the server and are not, and are never sent: ids whose
 * pads are there already (it expands them again), `features` without tensors (it takes them from its cache), and ids at the
 * chat route beside pictures (it drops them).
 */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { probePicture } from "../../base/media/probe-picture.ts";
import { imagesIn, imageUrl } from "../../base/media/stored-picture.ts";
import type { Usage } from "../../base/schema/message.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { foldImages, type ImageSpan, type PictureTokens } from "../../base/tokens/image-spans.ts";
import { isMeasured } from "../chat/alignment.ts";
import { chatFinish } from "../chat/finish.ts";
import { promptComplaint } from "../chat/prompt-echo.ts";
import { fromChatEntry } from "../chat/sampled-tokens.ts";
import type { RankedToken, SampleEvent, SampleRequest, ServedPictures } from "../engine.ts";
import type { EngineClient } from "../http/engine-client.ts";
import { PromptLogprobs, toRankedTokens } from "./prompt-logprobs.ts";
import { wholeSampledNothing } from "./sampled-nothing.ts";
import { readWeightVersions } from "./weight-versions.ts";

const renderPath = "/v1/chat/completions/render";

const Ids = z.array(z.number().int().nonnegative());
const Placeholders = z.looseObject({
  image: z.array(z.looseObject({ offset: z.number().int().nonnegative(), length: z.number().int().positive() })).nullish(),
});

const RenderedChat = z.looseObject({
  token_ids: Ids,
  features: z.looseObject({ mm_placeholders: Placeholders.nullish() }).nullish(),
  sampling_params: z.looseObject({}),
  parse_context: z.looseObject({}).nullish(),
});
type RenderedChat = z.infer<typeof RenderedChat>;

export type ChatRender = { token_ids: number[]; spans: ImageSpan[]; answer: RenderedChat };

/** `body`: a chat request. Throws the server's refusal: 403 where `--enable-scale-out` is missing. */
export async function renderChat(client: EngineClient, body: Record<string, unknown>, signal: AbortSignal): Promise<ChatRender> {
  const asked = { ...body, stream: false, mm_payload: "none" };
  const answer = RenderedChat.parse(await client.json("POST", renderPath, asked, signal));
  return { token_ids: answer.token_ids, spans: spansOf(answer.features?.mm_placeholders), answer };
}

function spansOf(placeholders: z.infer<typeof Placeholders> | null | undefined): ImageSpan[] {
  const spans = (placeholders?.image ?? []).map(({ offset, length }) => ({ start: offset, length }));
  return spans.toSorted((one, other) => one.start - other.start);
}

/** What the served model makes of a picture; `missing` is why that is not known, null where it takes none. */
export async function probePictures(
  client: EngineClient,
  model: string,
  signal: AbortSignal,
): Promise<{ images: ServedPictures | null; missing: string | null }> {
  try {
    const { status } = await client.send("POST", renderPath, { ...aroundPicture(model, "a", "b"), mm_payload: "none" }, signal, "probe");
    // The routes are there in any case.
    if (status === 403)
      return { images: null, missing: "start vLLM with --enable-scale-out: without it no route tells where pictures stand in a prompt" };
    if (status !== 200) return { images: null, missing: null };
    const tokens = await pictureTokens(client, model, signal);
    if (tokens === null) return { images: null, missing: "the model makes something else of a picture than a run of one token" };
    return { images: { ...tokens, token_in: await takesPictures(client, model, signal) }, missing: null };
  } catch {
    signal.throwIfAborted();
    return { images: null, missing: null };
  }
}

/** A token beside the picture is the template's own where it is the same beside other words. */
async function pictureTokens(client: EngineClient, model: string, signal: AbortSignal): Promise<PictureTokens | null> {
  const [one, other] = [
    await renderChat(client, aroundPicture(model, "a", "b"), signal),
    await renderChat(client, aroundPicture(model, "x1", "?"), signal),
  ];
  const frames = [one, other].map(({ token_ids, spans: [span, ...more] }) => {
    if (span === undefined || more.length > 0) return null;
    const pads = new Set(token_ids.slice(span.start, span.start + span.length));
    const [pad] = pads;
    if (pad === undefined || pads.size > 1) return null;
    return { pad, before: token_ids[span.start - 1] ?? null, after: token_ids[span.start + span.length] ?? null };
  });
  const [first, second] = frames;
  if (!first || first.pad !== second?.pad) return null;
  return {
    pad: first.pad,
    before: first.before === second.before ? first.before : null,
    after: first.after === second.after ? first.after : null,
  };
}

function aroundPicture(model: string, before: string, after: string): Record<string, unknown> {
  const content = [
    { type: "text", text: before },
    { type: "image_url", image_url: { url: probePicture } },
    { type: "text", text: after },
  ];
  return { model, messages: [{ role: "user", content }], max_tokens: 1 };
}

/** It samples on ids with a picture beside them, reads the sample, and echoes the ids with the picture's pads. */
async function takesPictures(client: EngineClient, model: string, signal: AbortSignal): Promise<boolean> {
  try {
    const chat = await renderChat(client, aroundPicture(model, "a", "b"), signal);
    const body = generateBody(chat, { prompt: foldImages(chat.token_ids, chat.spans), urls: [probePicture], keepLimit: true });
    const answer = Generated.parse(await client.json("POST", "/inference/v1/generate", body, signal));
    return promptComplaint(IdText.of(chat.token_ids), answer.prompt_token_ids ? { token_ids: answer.prompt_token_ids } : null) === null;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

type GenerateOrder = { prompt: readonly number[]; urls: readonly string[]; keepLimit: boolean };

/** `keepLimit`: the request states `max_tokens`. Else the server takes what room there is behind these ids, which render cannot know. */
function generateBody({ answer }: ChatRender, { prompt, urls, keepLimit }: GenerateOrder): Record<string, unknown> {
  const { features: _features, token_offsets: _offsets, request_id: _id, stream_options: _stream, sampling_params, ...rest } = answer;
  const { max_tokens, ...params } = sampling_params;
  return {
    ...rest,
    token_ids: prompt,
    content_parts: urls.map((url) => ({ type: "image_url", url })),
    sampling_params: keepLimit ? { max_tokens, ...params } : params,
    output_mode: "derender",
    stream: false,
    return_token_ids: true,
  };
}

const Entry = z.looseObject({ logprob: z.number().nullish() });

const Generated = z.looseObject({
  model: z.string().nullish(),
  prompt_token_ids: Ids.nullish(),
  mm_placeholders: Placeholders.nullish(),
  usage: z
    .looseObject({
      prompt_tokens: z.number().int().nullish(),
      completion_tokens: z.number().int().nullish(),
      prompt_tokens_details: z.looseObject({ cached_tokens: z.number().int().nullish() }).nullish(),
      completion_tokens_details: z.looseObject({ reasoning_tokens: z.number().int().nullish() }).nullish(),
    })
    .nullish(),
  choices: z
    .array(
      z.looseObject({
        message: z.looseObject({
          content: z.string().nullish(),
          reasoning: z.string().nullish(),
          tool_calls: z
            .array(
              z.looseObject({ id: z.string().nullish(), function: z.looseObject({ name: z.string(), arguments: z.string().nullish() }) }),
            )
            .nullish(),
        }),
        finish_reason: z.string().nullish(),
        stop_reason: z.union([z.string(), z.number()]).nullish(),
        token_ids: Ids.nullish(),
        weight_versions: z.unknown().optional(),
        logprobs: z.looseObject({ content: z.array(Entry).nullish() }).nullish(),
      }),
    )
    .min(1),
});
type Generated = z.infer<typeof Generated>;

/**
 * One turn over `generate`: on the ids of the request, else on what chat would sample on. `body`: the same request for chat. What
 * the server echoes must be the prompt with its pictures' pads, or the turn is `misaligned`.
 */
export async function samplePictured(
  client: EngineClient,
  request: SampleRequest,
  body: Record<string, unknown>,
  signal: AbortSignal,
): Promise<SampleEvent[]> {
  const images = imagesIn(request.messages);
  const chat = await renderChat(client, body, signal);
  if (chat.spans.length !== images.length)
    throw new AlidadeError(
      "engine_error",
      `the engine at ${client.baseUrl} told ${chat.spans.length} places for ${images.length} pictures`,
    );
  const prompt = request.prompt_ids?.toIds() ?? foldImages(chat.token_ids, chat.spans);
  const order = { prompt, urls: images.map(imageUrl), keepLimit: request.sampling.max_tokens !== undefined };
  const response = await client.open("/inference/v1/generate", generateBody(chat, order), signal, request.call_id, wholeSampledNothing);
  const answer = Generated.safeParse(readJson(await response.text()));
  if (!answer.success) throw new AlidadeError("engine_error", `the engine at ${client.baseUrl} answered in another shape than generate's`);
  return toEvents(answer.data, { request, prompt, chat, images: images.length });
}

type AskedTurn = { request: SampleRequest; prompt: readonly number[]; chat: ChatRender; images: number };

function toEvents(answer: Generated, asked: AskedTurn): SampleEvent[] {
  const choice = answer.choices[0] as Generated["choices"][number];
  const { message } = choice;
  const events: SampleEvent[] = [{ type: "accepted", status: 200 }];
  const spans = spansOf(answer.mm_placeholders);
  if (answer.prompt_token_ids) events.push({ type: "prompt", token_ids: answer.prompt_token_ids });
  const ids = choice.token_ids ?? [];
  if (ids.length > 0) events.push({ type: "tokens", token_ids: ids, ...logprobsOf(choice.logprobs?.content ?? null, ids, asked.request) });
  if (message.reasoning) events.push({ type: "reasoning-delta", text: message.reasoning });
  if (message.content) events.push({ type: "text-delta", text: message.content });
  for (const { id, function: called } of message.tool_calls ?? [])
    events.push({ type: "tool-call", id: id ?? "", name: called.name, arguments: called.arguments ?? "" });
  const misaligned = complaintOf(answer, spans, asked);
  const weights = readWeightVersions(choice.weight_versions);
  if (misaligned === null) events.push({ type: "images", spans });
  events.push({
    type: "end",
    finish_reason: chatFinish(choice.finish_reason),
    stop: choice.stop_reason ?? null,
    usage: usageOf(answer),
    engine_model: answer.model ?? null,
    ...(weights && { weights }),
    ...(misaligned !== null && { misaligned }),
  });
  return events;
}

/** null: it sampled on the very prompt that was asked for, with a run of pads for each picture. */
function complaintOf(
  { prompt_token_ids: echo }: Generated,
  spans: ImageSpan[],
  { request, prompt, chat, images }: AskedTurn,
): string | null {
  if (!echo) return "the engine echoed no prompt";
  if (spans.length !== images) return `the engine told ${spans.length} places for ${images} pictures`;
  if (!request.prompt_ids && promptComplaint(IdText.of(chat.token_ids), { token_ids: echo }) !== null)
    return "the engine sampled on another prompt than it rendered";
  try {
    const complaint = promptComplaint(IdText.of(prompt), { token_ids: foldImages(echo, spans) });
    return complaint && `the engine sampled on ${complaint}`;
  } catch (error) {
    return `the engine told places where no pictures can be: ${(error as Error).message}`;
  }
}

/** One logprob for each id; all null where the engine gave another number of them. */
function logprobsOf(content: z.infer<typeof Entry>[] | null, ids: readonly number[], { token_logprobs: asked }: SampleRequest) {
  if (content?.length !== ids.length) return { logprobs: ids.map(() => null) };
  const logprobs = content.map(({ logprob }) => (isMeasured(logprob) ? logprob : null));
  return { logprobs, ...(asked && { tokens: ids.map((id, at) => fromChatEntry(id, content[at] as Record<string, unknown>, asked.top)) }) };
}

function usageOf({ usage }: Generated): Usage {
  return {
    prompt_tokens: usage?.prompt_tokens ?? null,
    cached_tokens: usage?.prompt_tokens_details?.cached_tokens ?? null,
    sampled_tokens: usage?.completion_tokens ?? null,
    reasoning_tokens: usage?.completion_tokens_details?.reasoning_tokens ?? null,
  };
}

const ScoredPrompt = z.looseObject({
  prompt_token_ids: Ids.nullish(),
  prompt_logprobs: PromptLogprobs,
});

/** Teacher forcing with pictures. Throws `engine_error` where the server scored another prompt. */
export async function scorePictured(
  client: EngineClient,
  order: { model: string; tokenIds: readonly number[]; top: number; spans: readonly ImageSpan[]; urls: readonly string[] },
  signal: AbortSignal,
): Promise<RankedToken[]> {
  const body = {
    model: order.model,
    token_ids: foldImages(order.tokenIds, order.spans),
    content_parts: order.urls.map((url) => ({ type: "image_url", url })),
    sampling_params: { max_tokens: 1, temperature: 0, prompt_logprobs: order.top },
    return_token_ids: true,
    stream: false,
  };
  const answer = ScoredPrompt.parse(await client.json("POST", "/inference/v1/generate", body, signal));
  const complaint = promptComplaint(IdText.of(order.tokenIds), answer.prompt_token_ids ? { token_ids: answer.prompt_token_ids } : null);
  if (complaint !== null) throw new AlidadeError("engine_error", `the engine at ${client.baseUrl} scored ${complaint}`);
  return toRankedTokens(order.tokenIds, answer.prompt_logprobs, order.top);
}
