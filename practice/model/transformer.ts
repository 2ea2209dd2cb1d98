/**
 * A small llama-like decoder: RMSNorm, rotary positions, grouped queries, SwiGLU. Every logit is a deterministic function
 * of the tokens before it, and teacher forcing gives the same numbers as sampling did.
 *
 * Later positions need only the keys and values of an earlier one. So a prompt token skips the rest of the last layer, which
 * saves half of the work for the prompts of real harnesses.
 *
 * One code path serves prompt, sampling and scoring, token by token: that, and not luck, is why the numbers agree.
 */
import { blockSize, type KeyValueBlock, KeyValues } from "./key-values.ts";
import type { LayerWeights, LlamaShape, Weights } from "./weights.ts";

export class Transformer {
  readonly shape: LlamaShape;
  /** The logits of the last step that computed them; the next one overwrites them. */
  readonly logits: Float64Array;

  readonly #weights: Weights;
  readonly #keyValueWidth: number;

  // Scratch, so that a token allocates nothing. A step is synchronous: requests that interleave never share one.
  readonly #residual: Float64Array;
  readonly #normed: Float64Array;
  readonly #query: Float64Array;
  readonly #key: Float64Array;
  readonly #value: Float64Array;
  readonly #mixed: Float64Array;
  readonly #gate: Float64Array;
  readonly #up: Float64Array;
  readonly #cosine: Float64Array;
  readonly #sine: Float64Array;
  readonly #frequency: Float64Array;
  /** [visible position], for one head at a time. Grows with the context if there is no window. */
  #scores: Float64Array;

  constructor(weights: Weights) {
    const { shape } = weights;
    const half = shape.headSize / 2;
    this.shape = shape;
    this.#weights = weights;
    this.#keyValueWidth = shape.keyValueHeads * shape.headSize;
    this.logits = new Float64Array(shape.vocabularySize);
    this.#residual = new Float64Array(shape.width);
    this.#normed = new Float64Array(shape.width);
    this.#query = new Float64Array(shape.heads * shape.headSize);
    this.#key = new Float64Array(this.#keyValueWidth);
    this.#value = new Float64Array(this.#keyValueWidth);
    this.#mixed = new Float64Array(shape.heads * shape.headSize);
    this.#gate = new Float64Array(shape.hidden);
    this.#up = new Float64Array(shape.hidden);
    this.#cosine = new Float64Array(half);
    this.#sine = new Float64Array(half);
    const frequency = shape.singleAngles ? singleFrequency : exactFrequency;
    this.#frequency = Float64Array.from({ length: half }, (_, pair) => frequency(shape.ropeBase, pair / half));
    this.#scores = new Float64Array(shape.sinks + (shape.window ?? 1024));
  }

  /** Numbers of keys that one position keeps over all layers; it keeps as many of values. */
  get rowWidth(): number {
    return this.shape.layers * this.#keyValueWidth;
  }

  /** An empty sequence. */
  begin(): KeyValues {
    return new KeyValues(this.rowWidth);
  }

  /** Appends one token to `past`, and where they are wanted leaves the logits of what follows in `logits`. */
  step(token: number, past: KeyValues, wantLogits: boolean): void {
    const { layers, embedding, norm, head, bias } = this.#weights;
    const { width, hidden, normEpsilon } = this.shape;
    const position = past.length;
    const block = past.grow();
    this.#rotateTo(position);
    const residual = this.#residual;
    residual.set(embedding.subarray(token * width, (token + 1) * width));
    for (const [index, layer] of layers.entries()) {
      normalise(residual, layer.attentionNorm, normEpsilon, this.#normed);
      this.#remember(layer, index, position, block);
      if (index === layers.length - 1 && !wantLogits) return;
      multiply(layer.query, this.#normed, this.#query);
      this.#rotate(this.#query);
      this.#attend(index, position, past);
      addProduct(layer.output, this.#mixed, residual);
      normalise(residual, layer.mlpNorm, normEpsilon, this.#normed);
      multiply(layer.gate, this.#normed, this.#gate);
      multiply(layer.up, this.#normed, this.#up);
      for (let unit = 0; unit < hidden; unit += 1) {
        const gate = this.#gate[unit] as number;
        this.#up[unit] = ((this.#up[unit] as number) * gate) / (1 + Math.exp(-gate));
      }
      addProduct(layer.down, this.#up, residual);
    }
    normalise(residual, norm, normEpsilon, this.#normed);
    multiply(head, this.#normed, this.logits);
    if (bias) for (let id = 0; id < bias.length; id += 1) this.logits[id] = (this.logits[id] as number) + (bias[id] as number);
  }

  #remember(layer: LayerWeights, index: number, position: number, block: KeyValueBlock): void {
    multiply(layer.key, this.#normed, this.#key);
    multiply(layer.value, this.#normed, this.#value);
    this.#rotate(this.#key);
    const at = (index * blockSize + (position % blockSize)) * this.#keyValueWidth;
    block.keys.set(this.#key, at);
    block.values.set(this.#value, at);
  }

  #rotateTo(position: number): void {
    for (let pair = 0; pair < this.#frequency.length; pair += 1) {
      const exact = position * (this.#frequency[pair] as number);
      const angle = this.shape.singleAngles ? Math.fround(exact) : exact;
      this.#cosine[pair] = Math.cos(angle);
      this.#sine[pair] = Math.sin(angle);
    }
  }

  /** Turns every head of `vector` by the angles of the current position. */
  #rotate(vector: Float64Array): void {
    const { headSize } = this.shape;
    const half = headSize / 2;
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

  /** Writes the softmax attention of every head over the visible positions into `#mixed`. */
  #attend(layer: number, position: number, past: KeyValues): void {
    const { window, sinks, heads, keyValueHeads, headSize } = this.shape;
    const windowStart = window === null ? 0 : Math.max(0, position - window + 1);
    const firstSinks = Math.min(sinks, windowStart);
    const seen = firstSinks + position + 1 - windowStart;
    if (seen > this.#scores.length) this.#scores = new Float64Array(2 * seen);
    const mixed = this.#mixed.fill(0);
    const scores = this.#scores;
    const range = { layer, past, headSize, rowSize: this.#keyValueWidth, scores };
    for (let head = 0; head < heads; head += 1) {
      const at = head * headSize;
      const keyAt = Math.floor((head * keyValueHeads) / heads) * headSize;
      scoreRange(range, this.#query, at, keyAt, 0, firstSinks, 0);
      scoreRange(range, this.#query, at, keyAt, windowStart, position + 1, firstSinks);
      softmax(scores, seen);
      mixRange(range, mixed, at, keyAt, 0, firstSinks, 0);
      mixRange(range, mixed, at, keyAt, windowStart, position + 1, firstSinks);
    }
  }
}

function exactFrequency(base: number, part: number): number {
  return base ** -part;
}

/** Rounds each step to single precision, as PyTorch does: at position 1,000 another rounding turns a pair by 1e-4. */
function singleFrequency(base: number, part: number): number {
  return Math.fround(1 / Math.fround(base ** Math.fround(part)));
}

/** The keys and values that one layer's heads read. `rowSize`: numbers of one position in a layer of a block. */
type Attended = { layer: number; past: KeyValues; headSize: number; rowSize: number; scores: Float64Array };

/** Scores positions [from, to) for the query at `queryAt`, from `slot` on. */
function scoreRange(
  { layer, past, headSize, rowSize, scores }: Attended,
  query: Float64Array,
  queryAt: number,
  keyAt: number,
  from: number,
  to: number,
  slot: number,
): void {
  const scale = 1 / Math.sqrt(headSize);
  const whole = headSize - (headSize % 4);
  for (let position = from; position < to; ) {
    const { keys } = past.block(position);
    const end = Math.min(to, position - (position % blockSize) + blockSize);
    for (; position < end; position += 1) {
      const row = (layer * blockSize + (position % blockSize)) * rowSize + keyAt;
      // Four running sums, as in `dot`: most of a long prompt's work is here.
      let a = 0;
      let b = 0;
      let c = 0;
      let d = 0;
      for (let unit = 0; unit < whole; unit += 4) {
        a += (query[queryAt + unit] as number) * (keys[row + unit] as number);
        b += (query[queryAt + unit + 1] as number) * (keys[row + unit + 1] as number);
        c += (query[queryAt + unit + 2] as number) * (keys[row + unit + 2] as number);
        d += (query[queryAt + unit + 3] as number) * (keys[row + unit + 3] as number);
      }
      for (let unit = whole; unit < headSize; unit += 1) a += (query[queryAt + unit] as number) * (keys[row + unit] as number);
      scores[slot] = (a + b + (c + d)) * scale;
      slot += 1;
    }
  }
}

/** Adds the values of positions [from, to), weighted by their scores from `slot` on, to the head at `mixedAt`. */
function mixRange(
  { layer, past, headSize, rowSize, scores }: Attended,
  mixed: Float64Array,
  mixedAt: number,
  keyAt: number,
  from: number,
  to: number,
  slot: number,
): void {
  for (let position = from; position < to; ) {
    const { values } = past.block(position);
    const end = Math.min(to, position - (position % blockSize) + blockSize);
    // Four positions at once, so that a sum is read and written once for them.
    const fours = end - ((end - position) % 4);
    let row = (layer * blockSize + (position % blockSize)) * rowSize + keyAt;
    for (; position < fours; position += 4) {
      const other = row + rowSize;
      const third = other + rowSize;
      const fourth = third + rowSize;
      const a = scores[slot] as number;
      const b = scores[slot + 1] as number;
      const c = scores[slot + 2] as number;
      const d = scores[slot + 3] as number;
      for (let unit = 0; unit < headSize; unit += 1)
        mixed[mixedAt + unit] =
          (mixed[mixedAt + unit] as number) +
          (a * (values[row + unit] as number) +
            b * (values[other + unit] as number) +
            (c * (values[third + unit] as number) + d * (values[fourth + unit] as number)));
      slot += 4;
      row += 4 * rowSize;
    }
    for (; position < end; position += 1) {
      const score = scores[slot] as number;
      for (let unit = 0; unit < headSize; unit += 1)
        mixed[mixedAt + unit] = (mixed[mixedAt + unit] as number) + score * (values[row + unit] as number);
      slot += 1;
      row += rowSize;
    }
  }
}

function softmax(scores: Float64Array, count: number): void {
  let highest = Number.NEGATIVE_INFINITY;
  for (let slot = 0; slot < count; slot += 1) if ((scores[slot] as number) > highest) highest = scores[slot] as number;
  let sum = 0;
  for (let slot = 0; slot < count; slot += 1) {
    const weight = Math.exp((scores[slot] as number) - highest);
    scores[slot] = weight;
    sum += weight;
  }
  for (let slot = 0; slot < count; slot += 1) scores[slot] = (scores[slot] as number) / sum;
}

/** RMSNorm. */
function normalise(input: Float64Array, gain: Float64Array, epsilon: number, output: Float64Array): void {
  const width = input.length;
  let squares = 0;
  for (let unit = 0; unit < width; unit += 1) squares += (input[unit] as number) * (input[unit] as number);
  const scale = 1 / Math.sqrt(squares / width + epsilon);
  for (let unit = 0; unit < width; unit += 1) output[unit] = (input[unit] as number) * scale * (gain[unit] as number);
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

/** Keeps four running sums: with one, every addition would wait for the one before. Widths are multiples of four. */
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
