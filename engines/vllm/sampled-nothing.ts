/**
 * Which of vLLM's error answers prove that it sampled nothing. A gateway's 500 proves nothing in any case, so an answer that
 * counts for more than its status must have vLLM's own shape.
 */
import { z } from "zod";
import { tryJson } from "../../base/schema/read-json.ts";
import { type SampledNothing, sampledNothing } from "../http/sampled-nothing.ts";

/** For a stream: vLLM sends the 200 before the first token is sampled, so any other status comes before that. */
export const vllmSampledNothing: SampledNothing = (status, text) => {
  if (sampledNothing(status, text)) return true;
  return (status === 500 || status === 501) && OwnError.safeParse(tryJson(text)).data?.error.code === status;
};

/**
 * For an answer in one piece: the status comes behind the whole sample. A parser that fails there is answered with 500, or with
 * 400 as a bad value is. So a 400 proves it only where vLLM names the field of the request, or says what a check of its says.
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
