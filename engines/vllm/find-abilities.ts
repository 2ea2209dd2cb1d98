/** Asks a vLLM server for single tokens to find out what it supports. No route of it lists that. */
import { messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { promptComplaint } from "../chat/prompt-echo.ts";
import type { EngineFacts } from "../engine.ts";
import type { EngineClient } from "../http/engine-client.ts";
import { listFields, listLengths } from "./listed-support.ts";
import { listsKept, ProbeAnswer, probeBody, refused, toProbed, type VllmProbe, withBest, withWeights } from "./probe.ts";

const chatPath = "/v1/chat/completions";

/** A server that was started with `--max-logprobs 0` refuses to list the best tokens; no call needs that list. */
export async function probeCold(client: EngineClient, model: string, signal: AbortSignal): Promise<VllmProbe> {
  for (const more of [{ ...withBest, ...withWeights }, withBest]) {
    const probed = await probeOnce(client, { ...probeBody(model, 1), ...more }, signal);
    if (probed.accepted) return probed;
  }
  return probeOnce(client, probeBody(model, 1), signal);
}

export function probeWarm(client: EngineClient, model: string, signal: AbortSignal): Promise<VllmProbe> {
  return probeOnce(client, { ...probeBody(model, 2), ...withBest }, signal);
}

async function probeOnce(client: EngineClient, body: Record<string, unknown>, signal: AbortSignal): Promise<VllmProbe> {
  const { status, response } = await client.send("POST", chatPath, body, signal, "probe");
  if (status !== 200) {
    const refusal = client.refusal(status, await response.text().catch(messageOf));
    if (refusal.code !== "request_invalid") throw refusal;
    return refused(refusal.message);
  }
  return toProbed(readJson(await response.text()));
}

/**
 * Fields that bring the ids of a prompt to the chat route. vLLM then renders nothing; parsers, grammars and streams work as before.
 * vLLM 0.32 has the first field. The second is proposed. A server ignores a field that it does not know, so the prompt that it echoes
 * decides.
 */
const tokenInFields: readonly TokenInField[] = [["kv_transfer_params", "prompt_token_ids"], ["prompt_token_ids"]];

/** The keys that lead to the field, outermost first. */
export type TokenInField = readonly string[];

/** Returns the first field that the server takes: it then echoes these ids. */
export async function findTokenIn(client: EngineClient, model: string, signal: AbortSignal): Promise<TokenInField | null> {
  const ids = [3, 2, 1];
  for (const keys of tokenInFields) {
    const fields = keys.reduceRight<unknown>((value, key) => ({ [key]: value }), ids) as object;
    const answer = await client.json("POST", chatPath, { ...probeBody(model, 1), ...fields }, signal).catch(() => null);
    const token_ids = ProbeAnswer.safeParse(answer).data?.prompt_token_ids ?? null;
    if (promptComplaint(IdText.of(ids), token_ids && { token_ids }) === null) return keys;
  }
  return null;
}

export function whyNoTokenIn(baseUrl: string, { token_ids }: Pick<EngineFacts, "token_ids">): string {
  if (!token_ids) return "it gives no token ids, so there are none to go on from";
  return `the chat route at ${baseUrl} rendered the messages and left the prompt ids out: serve the model with a vLLM that takes them (tested with 0.32; it needs no server flag)`;
}

/** With one choice a token has no alternative: under the mask its logprob is exactly 0. */
export async function findGrammarLogprobs(client: EngineClient, model: string, signal: AbortSignal): Promise<"masked" | "unmasked" | null> {
  const body = { ...probeBody(model, 1), structured_outputs: { choice: ["a"] } };
  const answer = await client.json("POST", chatPath, body, signal).catch(() => null);
  const logprob = ProbeAnswer.safeParse(answer).data?.choices[0]?.logprobs?.content?.[0]?.logprob;
  return typeof logprob === "number" ? (logprob === 0 ? "masked" : "unmasked") : null;
}

/** A request for more tokens than `--max-logprobs` is refused. 0: the list does not tell which tokens a cut kept. */
export async function findMostListed(client: EngineClient, model: string, signal: AbortSignal): Promise<number> {
  for (const top of listLengths) {
    const body = { ...probeBody(model, 1), ...listFields({ top, top_k: 2 }), top_p: 1, top_k: 2 };
    const answer = await client.json("POST", chatPath, body, signal).catch(() => null);
    if (listsKept(answer, { top, top_k: 2 })) return top;
  }
  return 0;
}
