/**
 * Which of vLLM's error answers prove that it sampled nothing. Every call asks for a stream, and vLLM sends the 200 before
 * the first token is sampled: any other status comes before that. A gateway's 500 proves nothing, so the answer must have
 * vLLM's own shape. (Without a stream a 500 may come behind a whole sample.)
 */
import { z } from "zod";
import { tryJson } from "../../base/schema/read-json.ts";
import { type SampledNothing, sampledNothing } from "../http/sampled-nothing.ts";

export const vllmSampledNothing: SampledNothing = (status, text) => {
  if (sampledNothing(status, text)) return true;
  return (status === 500 || status === 501) && OwnError.safeParse(tryJson(text)).data?.error.code === status;
};

/** Routers copy the shape with a text for `code`. */
const OwnError = z.looseObject({ error: z.looseObject({ message: z.string(), code: z.number() }) });
