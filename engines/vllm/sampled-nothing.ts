/**
 * Decides whether an error answer proves that vLLM sampled nothing. A gateway's 500 never proves this. So an answer counts for more than
 * its status only if it has vLLM's own shape.
 */
import { z } from "zod";
import { tryJson } from "../../base/schema/read-json.ts";
import { type SampledNothing, sampledNothing } from "../http/sampled-nothing.ts";

/** For a stream: vLLM sends status 200 before it samples the first token, so any other status comes earlier still. */
export const vllmSampledNothing: SampledNothing = (status, text) => {
  if (sampledNothing(status, text)) return true;
  return (status === 500 || status === 501) && OwnError.safeParse(tryJson(text)).data?.error.code === status;
};

/**
 * For an answer in one piece: the status comes after the whole sample. If a parser fails there, vLLM answers 500, or 400 as for a bad
 * value. So a 400 proves it only if vLLM names the field of the request, or if a check of the request wrote the message.
 */
export const wholeSampledNothing: SampledNothing = (status, text) => {
  if (status !== 400) return sampledNothing(status, text);
  const error = RequestError.safeParse(tryJson(text)).data?.error;
  return error !== undefined && ((error.param ?? null) !== null || requestCheck.test(error.message));
};

const requestCheck = /maximum context length|maximum model length|max_model_len|validation error|max allowed/i;

/** Routers copy the shape with a text for `code`. */
const OwnError = z.looseObject({ error: z.looseObject({ message: z.string(), code: z.number() }) });

const RequestError = z.looseObject({ error: z.looseObject({ message: z.string(), param: z.string().nullish() }) });
