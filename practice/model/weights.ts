/** The weights of a llama-like decoder, random or from a file: the transformer does not need to know. */
import { SeededRandom } from "./random.ts";

export type LlamaShape = {
  vocabularySize: number;
  width: number;
  layers: number;
  heads: number;
  keyValueHeads: number;
  headSize: number;
  hidden: number;
  /** Positions seen before the current one, itself included; null: all. */
  window: number | null;
  /** First positions that always stay visible: attention needs them as an anchor when the window moves on. */
  sinks: number;
  ropeBase: number;
  /** True: angles are rounded as PyTorch and vLLM do. The weights were trained with that rounding, which matters at far positions. */
  singleAngles: boolean;
  normEpsilon: number;
};

/** Matrices are [output][input], rows one after another; norms are gains. */
export type LayerWeights = {
  attentionNorm: Float64Array;
  query: Float64Array;
  key: Float64Array;
  value: Float64Array;
  output: Float64Array;
  mlpNorm: Float64Array;
  gate: Float64Array;
  up: Float64Array;
  down: Float64Array;
};

export type Weights = {
  shape: LlamaShape;
  /** [token][unit] */
  embedding: Float64Array;
  layers: readonly LayerWeights[];
  norm: Float64Array;
  /** [token][unit]; if they are tied, this is the embedding itself. */
  head: Float64Array;
  /** Added to the logits, one number a token; null adds nothing. */
  bias: Float64Array | null;
};

export const randomShape = {
  width: 64,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headSize: 16,
  hidden: 160,
  sinks: 4,
  window: 192,
  ropeBase: 10_000,
  singleAngles: false,
  normEpsilon: 1e-6,
} as const satisfies Omit<LlamaShape, "vocabularySize">;

/** Standard deviation of a logit. 1 is far from flat (a free token costs 6 nats and not 6.9), and leaves every play of a choice a fair chance. */
const logitSpread = 1;
/** Queries and keys are drawn twice as wide as usual: flat attention would wash the context out to its average. */
const attentionGain = 2;

/**
 * Makes random weights from a seed: they have learned nothing, but they are a real policy. `bias` replaces what a trained model
 * knows about control tokens. A window keeps the cost of a token constant, because prompts of real harnesses are long.
 */
export function randomWeights(seed: number, bias: Float64Array): Weights {
  const shape = { ...randomShape, vocabularySize: bias.length };
  const { width, hidden } = shape;
  const [queryWidth, keyValueWidth] = [shape.heads * shape.headSize, shape.keyValueHeads * shape.headSize];
  const random = new SeededRandom(seed, 1);
  const draw = (rows: number, columns: number, gain: number) =>
    Float64Array.from({ length: rows * columns }, () => (random.normal() * gain) / Math.sqrt(columns));
  const ones = new Float64Array(width).fill(1);
  return {
    shape,
    embedding: draw(shape.vocabularySize, width, Math.sqrt(width)),
    layers: Array.from({ length: shape.layers }, () => ({
      attentionNorm: ones,
      query: draw(queryWidth, width, attentionGain),
      key: draw(keyValueWidth, width, attentionGain),
      value: draw(keyValueWidth, width, 1),
      output: draw(width, queryWidth, 1),
      mlpNorm: ones,
      gate: draw(hidden, width, 1),
      up: draw(hidden, width, 1),
      down: draw(width, hidden, 1),
    })),
    norm: ones,
    head: draw(shape.vocabularySize, width, logitSpread),
    bias,
  };
}
