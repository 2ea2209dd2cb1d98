/** The one-token probe of vLLM's chat route, and what its answer shows about the server. */
import { z } from "zod";
import { isMeasured } from "../chat/alignment.ts";
import { type AskedList, supportOf } from "./listed-support.ts";
import { readRouting } from "./routing.ts";
import { readWeightVersions } from "./weight-versions.ts";

export const Logprob = z.looseObject({ logprob: z.number().nullable().optional() });

export const ProbeAnswer = z.looseObject({
  prompt_token_ids: z.array(z.number()).nullish(),
  choices: z.array(
    z.looseObject({
      token_ids: z.array(z.number()).nullish(),
      routed_experts: z.string().nullish(),
      weight_versions: z.unknown().optional(),
      logprobs: z.looseObject({ content: z.array(Logprob.extend({ top_logprobs: z.array(Logprob).nullish() })).nullish() }).nullish(),
    }),
  ),
});

export type VllmProbe = {
  accepted: boolean;
  refusal: string | null;
  prompt_ids: boolean;
  token_ids: boolean;
  /** The sampled token's. */
  logprob: number | null;
  /** The likeliest token's; null where the server lists none. */
  best: number | null;
  /** The server tells which experts the tokens took. */
  routing: boolean;
  /** The server tells which weights sampled the tokens. */
  weights: boolean;
};

/** The list begins with the sampled token, then the best ones, so with two entries one of them is the best token's. */
export const withBest = { top_logprobs: 2 };

/** 0.33 knows the field. 0.32 ignores it, as it ignores all fields that it does not know. */
export const withWeights = { return_weight_versions: true };

export function probeBody(model: string, temperature: number): Record<string, unknown> {
  return {
    model,
    messages: [{ role: "user", content: "ping" }],
    max_tokens: 1,
    temperature,
    logprobs: true,
    top_logprobs: 0,
    return_token_ids: true,
  };
}

/** The server refuses the fields that ask for ids. */
export function refused(refusal: string): VllmProbe {
  return { accepted: false, refusal, prompt_ids: false, token_ids: false, logprob: null, best: null, routing: false, weights: false };
}

export function toProbed(body: unknown): VllmProbe {
  const answer = ProbeAnswer.safeParse(body);
  const choice = answer.data?.choices[0];
  const first = choice?.logprobs?.content?.[0];
  return {
    accepted: true,
    refusal: null,
    prompt_ids: Boolean(answer.data?.prompt_token_ids?.length),
    token_ids: Boolean(choice?.token_ids?.length),
    logprob: first?.logprob ?? null,
    best: bestLogprob(first?.top_logprobs ?? []),
    routing: readRouting(choice?.routed_experts ?? "", 0) !== null,
    weights: readWeightVersions(choice?.weight_versions) !== null,
  };
}

/** Does the list of the likeliest tokens show which ones the sampling kept? */
export function listsKept(body: unknown, asked: AskedList): boolean {
  const choice = ProbeAnswer.safeParse(body).data?.choices[0];
  const [id] = choice?.token_ids ?? [];
  return id !== undefined && typeof supportOf(id, choice?.logprobs?.content?.[0], asked) !== "string";
}

/** What keeps the engine at `baseUrl` from being trained on, and what to do about it. */
export function whyNotTrainable(baseUrl: string, probed: VllmProbe): string | null {
  if (!probed.accepted)
    return `the server at ${baseUrl} refuses "return_token_ids" and so is not vLLM's wire: ${probed.refusal}. Serve the model with vLLM (tested with 0.32), or name the server that it is with --kind`;
  if (probed.prompt_ids && probed.token_ids && probed.logprob !== null) return null;
  if (probed.prompt_ids && probed.token_ids)
    return `the engine at ${baseUrl} returned token ids but no logprobs: start vLLM with --max-logprobs 1 or more`;
  const lost = probed.prompt_ids ? "sampled" : probed.token_ids ? "prompt" : null;
  if (lost !== null)
    return `what answers at ${baseUrl} returned ${lost === "sampled" ? "prompt" : "sampled"} token ids but no ${lost} ones, which no vLLM does: a router in between strips them. Point --engine at the server itself`;
  return `the engine at ${baseUrl} returned no token ids for a request with "return_token_ids": true. Serve the model with a vLLM that knows this field (tested with 0.32; it needs no server flag); where it does, a router in between strips "token_ids": point --engine at the server itself`;
}

function bestLogprob(entries: { logprob?: number | null | undefined }[]): number | null {
  const known = entries.flatMap(({ logprob }) => (isMeasured(logprob) ? [logprob] : []));
  return known.length === 0 ? null : Math.max(...known);
}
