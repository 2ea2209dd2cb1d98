/**
 * A second opinion on logprobs: llama.cpp in this process (node-llama-cpp, which the user installs where it is wanted:
 * most people never need it, and it weighs 85 MB), over a GGUF file of the same weights. It shares no code with the
 * engines that sample, so that a bug of theirs cannot hide in both.
 */
import { AlidadeError, messageOf } from "../base/errors.ts";
import { installCommand } from "../base/host/install-command.ts";
import { loadOptional } from "../base/host/optional-package.ts";

export type GgufScorer = AsyncDisposable & {
  /** Logprob of each token after those before it, in nats; null for the first. */
  score(tokenIds: number[]): Promise<(number | null)[]>;
};

/** The release that this file was tested with; `score` works around its faults. */
export const llamaCppPackage = "node-llama-cpp@3.22.1";

/**
 * Opens a GGUF file in f32 arithmetic; the library is looked for from the folder `from`, then from here. Throws
 * `config_invalid` where the library or the file is missing.
 */
export async function openGguf(file: string, from = process.cwd()): Promise<GgufScorer> {
  const { getLlama } = await load(from);
  await using scope = new AsyncDisposableStack();
  // More than one thread spins on a busy machine; a model that is small enough to audit so needs no more.
  const llama = scope.adopt(await getLlama({ gpu: false, build: "never", maxThreads: 1, logLevel: "error" }), (one) => one.dispose());
  const loaded = await llama.loadModel({ modelPath: file }).catch((error: unknown) => {
    throw new AlidadeError("config_invalid", `llama.cpp cannot load ${file}: ${messageOf(error)}`, { param: "gguf" });
  });
  const model = scope.adopt(loaded, (one) => one.dispose());
  const release = scope.move();
  return {
    score: (tokenIds) => score(model, tokenIds),
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}

async function score(model: Model, tokenIds: number[]): Promise<(number | null)[]> {
  if (tokenIds.length < 2) return tokenIds.map(() => null);
  // As long as the sequence: a context that is too short shifts its oldest tokens out without a word. The cache of keys
  // and values is f16 by default, which alone costs 2e-5 nats.
  const context = await model.createContext({
    contextSize: tokenIds.length,
    sequences: 1,
    batchSize: Math.min(tokenIds.length, 512),
    threads: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
  });
  try {
    const items = tokenIds.slice(0, -1).map((id, at): EvaluateItem => [id, { generateNext: nextOf(tokenIds[at + 1] as number) }]);
    const answers = await context.getSequence().controlledEvaluate(items);
    return [null, ...items.map((_, at) => logprobOf(answers[at], tokenIds[at + 1] as number))];
  } finally {
    await context.dispose();
  }
}

/** `includeTop`, because `includeMax` is ignored by this release: the softmax's weights are relative to the largest logit. */
function nextOf(token: number) {
  return { logits: { filter: { tokens: [token], includeTop: 1 } }, totalLogitWeight: true, options: {} };
}

function logprobOf(answer: NextLogits | undefined, token: number): number | null {
  const { logits, totalLogitWeight } = answer?.next ?? {};
  const logit = logits?.get(token);
  if (logits === undefined || logit === undefined || totalLogitWeight === undefined) return null;
  return logit - Math.max(...logits.values()) - Math.log(totalLogitWeight);
}

async function load(from: string): Promise<Library> {
  const missing = `scoring a GGUF file needs node-llama-cpp, which is not installed here: ${installCommand([llamaCppPackage])} (--omit=optional and the package of your platform, such as @node-llama-cpp/linux-x64, save 600 MB)`;
  return (await loadOptional("node-llama-cpp", { missing, param: "gguf", from })) as Library;
}

/** The little of node-llama-cpp that is used. */
type Library = { getLlama(options: Record<string, unknown>): Promise<Llama> };
type Disposable = { dispose(): Promise<void> };
type Llama = Disposable & { loadModel(options: { modelPath: string }): Promise<Model> };
type Model = Disposable & { createContext(options: Record<string, unknown>): Promise<Disposable & { getSequence(): ScoredSequence }> };
type ScoredSequence = { controlledEvaluate(items: EvaluateItem[]): Promise<(NextLogits | undefined)[]> };
type EvaluateItem = [token: number, options: { generateNext: ReturnType<typeof nextOf> }];
type NextLogits = { next?: { logits?: Map<number, number>; totalLogitWeight?: number } };
