/** Several samples of one request (`candidateCount`): as requests for one each, and their answers as one. */
import { z } from "zod";
import type { JsonObject } from "../../../base/schema/message.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import type { SseFrame } from "../../../base/wire/sse.ts";
import type { SeveralAnswers, StreamJoiner } from "../dialect.ts";
import { checked, isObject } from "../edge.ts";
import { seeded, sum } from "../several-samples.ts";
import { camelKeys } from "./wire.ts";

/** Google's limit. */
const Count = z.number().int().min(1).max(8).nullish();

export const candidates: SeveralAnswers = {
  split(body) {
    if (!isObject(body)) return null;
    const { generationConfig, ...others } = camelKeys(body);
    const config = isObject(generationConfig) ? camelKeys(generationConfig) : {};
    const count = checked(Count, config.candidateCount, "generationConfig.candidateCount") ?? 1;
    if (count === 1) return null;
    return Array.from({ length: count }, (_, sample) => ({
      ...others,
      generationConfig: { ...config, candidateCount: 1, ...seeded(config.seed, sample) },
    }));
  },
  join(bodies) {
    const [{ usageMetadata: _, alidade: _own, ...head } = {}] = bodies;
    const usageMetadata = sum(bodies.map((body) => body.usageMetadata));
    const malformed_tool_calls = bodies.flatMap(({ alidade }) => (isObject(alidade) ? alidade.malformed_tool_calls : []));
    return {
      ...head,
      candidates: bodies.flatMap((body) => body.candidates),
      ...(usageMetadata && { usageMetadata }),
      ...(malformed_tool_calls.length > 0 && { alidade: { malformed_tool_calls } }),
    };
  },
  joiner: () => new CandidateStream(),
};

/** Pieces of several streams as those of one: one id, and one usage at the end. A piece with a reason to finish is its stream's last. */
class CandidateStream implements StreamJoiner {
  #head: JsonObject | null = null;
  readonly #usages: unknown[] = [];

  take(frames: readonly SseFrame[]): { frames: SseFrame[]; hasEnded: boolean } {
    const taken = frames.map(({ data }) => this.#take(data));
    return { frames: taken.map(({ frame }) => frame), hasEnded: taken.some(({ isLast }) => isLast) };
  }

  end(): SseFrame[] {
    const usageMetadata = sum(this.#usages);
    return usageMetadata === null ? [] : [{ data: JSON.stringify({ usageMetadata, ...this.#head }) }];
  }

  #take(data: string): { frame: SseFrame; isLast: boolean } {
    const piece = readJson(data) as JsonObject;
    if (!Array.isArray(piece.candidates)) return { frame: { data }, isLast: false };
    const { usageMetadata, responseId, createTime, modelVersion, ...others } = piece;
    this.#head ??= { modelVersion, createTime, responseId };
    const isLast = piece.candidates.some((one) => isObject(one) && one.finishReason !== undefined);
    if (isLast) this.#usages.push(usageMetadata);
    return { frame: { data: JSON.stringify({ ...others, ...this.#head }) }, isLast };
  }
}
