/** Several samples of one request (`n`, a list of prompts): as requests for one each, and their answers as one. */
import { z } from "zod";
import type { JsonObject } from "../../../base/schema/message.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import type { SseFrame } from "../../../base/wire/sse.ts";
import type { SeveralAnswers, StreamJoiner } from "../dialect.ts";
import { checked, invalid, isObject } from "../edge.ts";
import { seeded, sum } from "../several-samples.ts";

/** OpenAI's limit. */
const mostChoices = 128;

const Count = z.number().int().min(1).nullish();

/** `prompts`: the body may have a list of them. */
export const choices = ({ prompts }: { prompts: boolean }): SeveralAnswers => ({
  split(body) {
    if (!isObject(body)) return null;
    const n = checked(Count, body.n, "n") ?? 1;
    const questions = prompts ? promptsOf(body.prompt).map((prompt) => ({ ...body, prompt })) : [body];
    const count = questions.length * n;
    if (count > mostChoices) throw invalid(n > 1 ? "n" : "prompt", `asks for ${count} answers; at most ${mostChoices} are given at once`);
    if (count === 1) return null;
    return questions.flatMap((question) => Array.from({ length: n }, (_, sample) => ({ ...question, n: 1, ...seeded(body.seed, sample) })));
  },
  join: (bodies) => {
    const [{ usage: _, ...head } = {}] = bodies;
    const usage = sum(bodies.map((body) => body.usage));
    return { ...head, choices: bodies.flatMap((body) => body.choices), ...(usage && { usage }) };
  },
  joiner: () => new ChoiceStream(),
});

function promptsOf(value: unknown): unknown[] {
  return Array.isArray(value) && value.length > 1 && typeof value[0] !== "number" ? value : [value];
}

/** Chunks of several streams as those of one: one id, one usage, one end. */
class ChoiceStream implements StreamJoiner {
  #head: JsonObject | null = null;
  readonly #usages: unknown[] = [];
  #lastUsage: JsonObject | null = null;

  take(frames: readonly SseFrame[]): { frames: SseFrame[]; hasEnded: boolean } {
    const hasEnded = frames.some(({ data }) => data === done);
    const kept = frames.filter(({ data }) => data !== done).flatMap((frame) => this.#take(frame));
    return { frames: kept, hasEnded };
  }

  end(): SseFrame[] {
    const usage = sum(this.#usages);
    const last = usage && { ...this.#lastUsage, ...this.#head, usage };
    return [...(last ? [{ data: JSON.stringify(last) }] : []), { data: done }];
  }

  #take({ data }: SseFrame): SseFrame[] {
    const chunk = readJson(data) as JsonObject;
    if (!Array.isArray(chunk.choices)) return [{ data }];
    const { id, created } = chunk;
    this.#head ??= { id, created };
    if (chunk.choices.length > 0) return [{ data: JSON.stringify({ ...chunk, ...this.#head }) }];
    this.#usages.push(chunk.usage);
    this.#lastUsage = chunk;
    return [];
  }
}

const done = "[DONE]";
