/** Opens the teacher of a run or a node: a server that scores tokens. */
import { AlidadeError, asAlidadeError } from "../../../base/errors.ts";
import type { Media } from "../../../base/media/media.ts";
import type { EngineFacts } from "../../../engines/index.ts";
import type { EnginePool } from "../../../proxy/pool/index.ts";
import type { AskTeacher } from "../../../reconstruct/index.ts";
import { type AskableTeacher, RolloutTeacher } from "../../../rollouts/index.ts";
import type { RunTeacher } from "../../config.ts";
import { openScorer, type ScoringEngine, scoreAt, scoreTopAt } from "./scoring-engine.ts";

/** `url`: as given. `words`: names of the options for its model and its likeliest tokens, for error messages. */
type AskedTeacher = { url: string | undefined; model?: string; top_k?: number; words: { model: string; top_k: string } };

/** Throws `config_invalid` if the server does not have the model, or if it cannot give the likeliest tokens. */
export function teacherAt({ engine, facts, policy }: ScoringEngine, asked: AskedTeacher, media: Media): AskableTeacher {
  const model = modelOf(facts, asked.model, asked.words.model);
  const { top_k } = asked;
  if (top_k !== undefined && engine.scoreTop === undefined)
    throw new AlidadeError(
      "config_invalid",
      `${engine.name} tells no likeliest tokens of a prompt here: take a teacher at vLLM or SGLang, or leave out ${asked.words.top_k}`,
      { param: "top_k" },
    );
  return {
    engine: engine.name,
    // The practice engine gets another port each time.
    url: asked.url === "practice" ? "practice" : engine.baseUrl,
    model,
    weight_version: facts.weight_version ?? policy?.version ?? null,
    tokenizer: facts.fingerprints?.tokenizer ?? null,
    ...(top_k !== undefined && { top_k }),
    ask: (trajectory, signal) => ({
      score: asker(engine, model, top_k, { trajectory, media, signal }),
      readsImages: facts.images !== undefined,
      // To score tokens, a server samples one more token after them.
      maxTokens: facts.max_model_len === null ? null : facts.max_model_len - 1,
    }),
  };
}

/** Throws `config_invalid` if the server does not serve `named`, or if it serves several models and none is named. */
function modelOf({ models, base_url }: EngineFacts, named: string | undefined, how: string): string {
  const [only, ...others] = models;
  if (only === undefined) throw new AlidadeError("engine_error", `the engine at ${base_url} serves no model`, { param: "engine" });
  if (named === undefined && others.length === 0) return only;
  const found = models.find((one) => one === named);
  if (found !== undefined) return found;
  const why = named === undefined ? "serves several models" : `serves no model "${named}"`;
  throw new AlidadeError("config_invalid", `the engine at ${base_url} ${why}: name one with ${how}: ${models.slice(0, 20).join(", ")}`, {
    param: "model",
  });
}

function asker(
  engine: ScoringEngine["engine"],
  model: string,
  top: number | undefined,
  of: Parameters<typeof scoreAt>[2],
): AskTeacher["score"] {
  if (top !== undefined) return scoreTopAt(engine, model, top, of);
  const score = scoreAt(engine, model, of);
  return async (...asked) => ({ logprobs: await score(...asked) });
}

type OpenTeacher = AsyncDisposable & { teacher: RolloutTeacher };

/**
 * `pool`: the engines that sample. Throws `config_invalid` if one of them is known to have another tokenizer. So no rollout is made in
 * vain. Also throws if the server cannot be used.
 */
export async function openTeacher(
  { engine: url, kind, api_key_env, model, top_k, concurrency, tries, seconds }: RunTeacher,
  { pool, media, note }: { pool: Pick<EnginePool, "slots">; media: Media; note: (text: string) => void },
  signal: AbortSignal,
): Promise<OpenTeacher> {
  await using scope = new AsyncDisposableStack();
  const engine = { url, kind, api_key_env };
  const opened = scope.use(
    await openScorer({ engine, policy: null }, "take a teacher at vLLM or SGLang", signal, "teacher").catch(unreachable),
  );
  const words = { model: "teacher.model", top_k: "teacher.top_k" };
  const teacher = teacherAt(opened, { url, words, ...(model !== undefined && { model }), ...(top_k !== undefined && { top_k }) }, media);
  assertSameTokenizer(teacher, pool);
  if (teacher.tokenizer === null)
    note(
      `it is unknown whether the teacher ${teacher.model} has the policy's tokenizer: its engine told no fingerprint (\`alidade doctor\`)`,
    );
  const release = scope.move();
  return {
    teacher: new RolloutTeacher({ teacher, atOnce: concurrency, tries, seconds, note }),
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}

function unreachable(error: unknown): never {
  const failure = asAlidadeError(error, "engine_error");
  if (failure.code !== "engine_unreachable") throw error;
  throw new AlidadeError("engine_unreachable", `teacher.engine: ${failure.message}`, { cause: error, param: "teacher.engine" });
}

function assertSameTokenizer({ model, url, tokenizer }: AskableTeacher, { slots }: Pick<EnginePool, "slots">): void {
  const other = slots.find(({ purpose, facts: { fingerprints } }) => {
    const own = fingerprints?.tokenizer ?? null;
    return purpose === "train" && own !== null && tokenizer !== null && own !== tokenizer;
  });
  if (other === undefined) return;
  throw new AlidadeError(
    "config_invalid",
    `the teacher ${model} at ${url} has another tokenizer than the engine ${other.name} (${other.facts.base_url}), so the same ids are other words to it: no rollout was begun; take a teacher of the policy's own family`,
    { param: "teacher.engine" },
  );
}
