/** Asks a model for one turn through the proxy, in a recorded session. */
import { z } from "zod";
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import type { GraderSampler } from "../grader.ts";

/** `wasCut`: it used up its tokens. Counts are null if the answer had none. */
export type ModelAnswer = { text: string; wasCut: boolean; prompt_tokens: number | null; sampled_tokens: number | null };

/** `code`: that of the proxy's error, or "". `infrastructure`: the same code, if the error is no fault of the request; else null. */
export type ModelRefusal = { status: number; code: string; infrastructure: ErrorCode | null; message: string };

/** `body`: fields of Chat Completions. Throws if the proxy does not answer, or if its answer has not the form of one. */
export async function askModel(
  { url, key }: Pick<GraderSampler, "url" | "key">,
  body: object,
  signal: AbortSignal,
): Promise<{ answer: ModelAnswer } | { refusal: ModelRefusal }> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    signal,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) return { refusal: refusalOf(response.status, text) };
  const { choices, usage } = Reply.parse(readJson(text));
  return {
    answer: {
      text: choices[0]?.message.content ?? "",
      wasCut: choices[0]?.finish_reason === "length",
      prompt_tokens: usage?.prompt_tokens ?? null,
      sampled_tokens: usage?.completion_tokens ?? null,
    },
  };
}

const Reply = z.looseObject({
  choices: z
    .array(z.looseObject({ message: z.looseObject({ content: z.string().nullish() }), finish_reason: z.string().nullish() }))
    .min(1),
  usage: z.looseObject({ prompt_tokens: z.number().nullish(), completion_tokens: z.number().nullish() }).nullish(),
});

const Failure = z.looseObject({ error: z.looseObject({ code: z.string().nullish(), message: z.string().nullish() }) });

function refusalOf(status: number, body: string): ModelRefusal {
  const { code, message } = failureIn(body);
  return { status, code, infrastructure: infrastructureCode(code), message: `${status}: ${message.slice(0, 500)}` };
}

function failureIn(body: string): { code: string; message: string } {
  try {
    const { error } = Failure.parse(readJson(body));
    return { code: error.code ?? "", message: error.message ?? body };
  } catch {
    return { code: "", message: body };
  }
}

/** The code itself if the infrastructure is at fault; else null. */
export function infrastructureCode(code: string): ErrorCode | null {
  return Object.hasOwn(errorCodes, code) && errorCodes[code as ErrorCode] === "infrastructure" ? (code as ErrorCode) : null;
}
