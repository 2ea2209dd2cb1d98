/**
 * A small llama-like decoder: RMSNorm, rotary positions, grouped queries, SwiGLU, untied output head. Its weights are
 * random numbers from a seed, so it has learned nothing, but it is a real policy: every logit is a deterministic
 * function of the tokens before it, and teacher forcing gives the same numbers as sampling did.
 *
 * Two choices make it fast enough for the prompts of real harnesses. A position sees the first few tokens and a window
 * before it, so a token costs the same everywhere. And all that later positions need of an earlier one are its keys
 * and values, so a prompt token skips what comes after them in the last layer.
 *
 * One code path serves prompt, sampling and scoring, token by token: that, and not luck, is why the numbers agree.
 */
import { blockSize, type KeyValueBlock, KeyValues } from "./key-values.ts";
import { SeededRandom } from "./random.ts";

export const shape = {
  width: 64,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headSize: 16,
  hidden: 160,
  /** Positions that stay visible for ever: without them a window that moves off the start loses its anchor. */
  sinks: 4,
  /** Positions seen before the current one, itself included. */
  window: 192,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
} as const;

const { width, layers, heads, keyValueHeads, headSize, hidden, sinks, window } = shape;
const keyValueWidth = keyValueHeads * headSize;
const headsPerKey = heads / keyValueHeads;
const half = headSize / 2;

/** Standard deviation of a logit. 1 is far from flat (a free token costs 6 nats and not 6.9), and leaves every play of a choice a fair chance. */
const logitSpread = 1;
/** Queries and keys are drawn twice as wide as usual: flat attention would wash the context out to its average. */
const attentionGain = 2;

type Layer = {
  query: Float64Array;
  key: Float64Array;
  value: Float64Array;
  output: Float64Array;
  gate: Float64Array;
  up: Float64Array;
  down: Float64Array;
};

export class Transformer {
  readonly vocabularySize: number;
  /** The logits of the last step that computed them; the next one overwrites them. */
  readonly logits: Float64Array;

  readonly #embedding: Float64Array;
  readonly #layers: Layer[];
  readonly #head: Float64Array;
  readonly #bias: Float64Array;

  // Scratch, so that a token allocates nothing. A step is synchronous: requests that interleave never share one.
  readonly #residual = new Float64Array(width);
  readonly #normed = new Float64Array(width);
  readonly #query = new Float64Array(width);
  readonly #key = new Float64Array(keyValueWidth);
  readonly #value = new Float64Array(keyValueWidth);
  readonly #mixed = new Float64Array(width);
  readonly #gate = new Float64Array(hidden);
  readonly #up = new Float64Array(hidden);
  readonly #scores = new Float64Array(headsPerKey * (sinks + window));
  readonly #cosine = new Float64Array(half);
  readonly #sine = new Float64Array(half);
  readonly #frequency = Float64Array.from({ length: half }, (_, pair) => shape.ropeBase ** (-pair / half));

  /** `bias` is added to the logits, one number a token: what a trained model knows about control tokens. */
  constructor(options: { seed: number; vocabularySize: number; bias: Float64Array }) {
    this.vocabularySize = options.vocabularySize;
    const random = new SeededRandom(options.seed, 1);
    const draw = (rows: number, columns: number, gain: number) =>
      Float64Array.from({ length: rows * columns }, () => (random.normal() * gain) / Math.sqrt(columns));
    this.#embedding = draw(options.vocabularySize, width, Math.sqrt(width));
    this.#layers = Array.from({ length: layers }, () => ({
      query: draw(width, width, attentionGain),
      key: draw(keyValueWidth, width, attentionGain),
      value: draw(keyValueWidth, width, 1),
      output: draw(width, width, 1),
      gate: draw(hidden, width, 1),
      up: draw(hidden, width, 1),
      down: draw(width, hidden, 1),
    }));
    this.#head = draw(options.vocabularySize, width, logitSpread);
    this.#bias = options.bias;
    this.logits = new Float64Array(options.vocabularySize);
  }

  /** An empty sequence. */
  begin(): KeyValues {
    return new KeyValues(layers * keyValueWidth);
  }

  /** Appends one token to `past`, and where they are wanted leaves the logits of what follows in `logits`. */
  step(token: number, past: KeyValues, wantLogits: boolean): void {
    const position = past.length;
    const block = past.grow();
    this.#rotateTo(position);
    const residual = this.#residual;
    residual.set(this.#embedding.subarray(token * width, (token + 1) * width));
    for (let index = 0; index < layers; index += 1) {
      const layer = this.#layers[index] as Layer;
      normalise(residual, this.#normed);
      this.#remember(layer, index, position, block);
      if (index === layers - 1 && !wantLogits) return;
      multiply(layer.query, this.#normed, this.#query);
      this.#rotate(this.#query);
      this.#attend(index, position, past);
      addProduct(layer.output, this.#mixed, residual);
      normalise(residual, this.#normed);
      multiply(layer.gate, this.#normed, this.#gate);
      multiply(layer.up, this.#normed, this.#up);
      for (let unit = 0; unit < hidden; unit += 1) {
        const gate = this.#gate[unit] as number;
        this.#up[unit] = ((this.#up[unit] as number) * gate) / (1 + Math.exp(-gate));
      }
      addProduct(layer.down, this.#up, residual);
    }
    normalise(residual, this.#normed);
    multiply(this.#head, this.#normed, this.logits);
    for (let id = 0; id < this.vocabularySize; id += 1) this.logits[id] = (this.logits[id] as number) + (this.#bias[id] as number);
  }

  #remember(layer: Layer, index: number, position: number, block: KeyValueBlock): void {
    multiply(layer.key, this.#normed, this.#key);
    multiply(layer.value, this.#normed, this.#value);
    this.#rotate(this.#key);
    const at = rowOf(index, position);
    block.keys.set(this.#key, at);
    block.values.set(this.#value, at);
  }

  #rotateTo(position: number): void {
    for (let pair = 0; pair < half; pair += 1) {
      const angle = position * (this.#frequency[pair] as number);
      this.#cosine[pair] = Math.cos(angle);
      this.#sine[pair] = Math.sin(angle);
    }
  }

  /** Turns every head of `vector` by the angles of the current position. */
  #rotate(vector: Float64Array): void {
    for (let head = 0; head < vector.length; head += headSize) {
      for (let pair = 0; pair < half; pair += 1) {
        const x = vector[head + pair] as number;
        const y = vector[head + half + pair] as number;
        const cosine = this.#cosine[pair] as number;
        const sine = this.#sine[pair] as number;
        vector[head + pair] = x * cosine - y * sine;
        vector[head + half + pair] = x * sine + y * cosine;
      }
    }
  }

  /** Softmax attention of every head over the sinks and the window, into `#mixed`. */
  #attend(layer: number, position: number, past: KeyValues): void {
    const windowStart = Math.max(0, position - window + 1);
    const firstSinks = Math.min(sinks, windowStart);
    const mixed = this.#mixed.fill(0);
    const scores = this.#scores;
    const stride = sinks + window;
    for (let keyHead = 0; keyHead < keyValueHeads; keyHead += 1) {
      let seen = scoreRange(this.#query, keyHead, layer, past, 0, firstSinks, scores, stride, 0);
      seen = scoreRange(this.#query, keyHead, layer, past, windowStart, position + 1, scores, stride, seen);
      for (let group = 0; group < headsPerKey; group += 1) softmax(scores, group * stride, seen);
      const next = mixRange(mixed, keyHead, layer, past, 0, firstSinks, scores, stride, 0);
      mixRange(mixed, keyHead, layer, past, windowStart, position + 1, scores, stride, next);
    }
  }
}

/** Where a position's row of one layer starts, in the keys or the values of its block. */
function rowOf(layer: number, position: number): number {
  return (layer * blockSize + (position % blockSize)) * keyValueWidth;
}

const scoreScale = 1 / Math.sqrt(headSize);

/** Scores positions [from, to) for the query heads that share a key head; returns how many scores there are now. */
function scoreRange(
  query: Float64Array,
  keyHead: number,
  layer: number,
  past: KeyValues,
  from: number,
  to: number,
  scores: Float64Array,
  stride: number,
  at: number,
): number {
  let slot = at;
  const firstHead = keyHead * headsPerKey * headSize;
  for (let position = from; position < to; ) {
    const keys = past.block(position).keys;
    const end = Math.min(to, position - (position % blockSize) + blockSize);
    for (; position < end; position += 1) {
      const row = rowOf(layer, position) + keyHead * headSize;
      let first = 0;
      let second = 0;
      for (let unit = 0; unit < headSize; unit += 1) {
        const key = keys[row + unit] as number;
        first += (query[firstHead + unit] as number) * key;
        second += (query[firstHead + headSize + unit] as number) * key;
      }
      scores[slot] = first * scoreScale;
      scores[stride + slot] = second * scoreScale;
      slot += 1;
    }
  }
  return slot;
}

/** Adds the values of positions [from, to), weighted by their scores; returns the slot after the last one used. */
function mixRange(
  mixed: Float64Array,
  keyHead: number,
  layer: number,
  past: KeyValues,
  from: number,
  to: number,
  scores: Float64Array,
  stride: number,
  at: number,
): number {
  let slot = at;
  const firstHead = keyHead * headsPerKey * headSize;
  for (let position = from; position < to; ) {
    const values = past.block(position).values;
    const end = Math.min(to, position - (position % blockSize) + blockSize);
    for (; position < end; position += 1) {
      const row = rowOf(layer, position) + keyHead * headSize;
      const first = scores[slot] as number;
      const second = scores[stride + slot] as number;
      for (let unit = 0; unit < headSize; unit += 1) {
        const value = values[row + unit] as number;
        mixed[firstHead + unit] = (mixed[firstHead + unit] as number) + first * value;
        mixed[firstHead + headSize + unit] = (mixed[firstHead + headSize + unit] as number) + second * value;
      }
      slot += 1;
    }
  }
  return slot;
}

function softmax(scores: Float64Array, start: number, count: number): void {
  let highest = Number.NEGATIVE_INFINITY;
  for (let slot = start; slot < start + count; slot += 1) if ((scores[slot] as number) > highest) highest = scores[slot] as number;
  let sum = 0;
  for (let slot = start; slot < start + count; slot += 1) {
    const weight = Math.exp((scores[slot] as number) - highest);
    scores[slot] = weight;
    sum += weight;
  }
  for (let slot = start; slot < start + count; slot += 1) scores[slot] = (scores[slot] as number) / sum;
}

/** RMSNorm without a gain: random weights have nothing to say about it. */
function normalise(input: Float64Array, output: Float64Array): void {
  let squares = 0;
  for (let unit = 0; unit < width; unit += 1) squares += (input[unit] as number) * (input[unit] as number);
  const scale = 1 / Math.sqrt(squares / width + shape.normEpsilon);
  for (let unit = 0; unit < width; unit += 1) output[unit] = (input[unit] as number) * scale;
}

/** output = matrix · input, rows of the matrix one after another. */
function multiply(matrix: Float64Array, input: Float64Array, output: Float64Array): void {
  const columns = input.length;
  for (let row = 0, at = 0; row < output.length; row += 1, at += columns) output[row] = dot(matrix, at, input, columns);
}

/** output += matrix · input. */
function addProduct(matrix: Float64Array, input: Float64Array, output: Float64Array): void {
  const columns = input.length;
  for (let row = 0, at = 0; row < output.length; row += 1, at += columns)
    output[row] = (output[row] as number) + dot(matrix, at, input, columns);
}

/** Four running sums: one would make every addition wait for the one before it. */
function dot(matrix: Float64Array, at: number, input: Float64Array, columns: number): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  for (let column = 0; column < columns; column += 4) {
    a += (matrix[at + column] as number) * (input[column] as number);
    b += (matrix[at + column + 1] as number) * (input[column + 1] as number);
    c += (matrix[at + column + 2] as number) * (input[column + 2] as number);
    d += (matrix[at + column + 3] as number) * (input[column + 3] as number);
  }
  return a + b + (c + d);
}
