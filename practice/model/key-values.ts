/**
 * Keys and values of a token sequence, in blocks of a fixed number of positions, so that sequences which start alike
 * can share them. A block that is full is never written again: that is what makes sharing safe.
 */

/** Positions in a block. A shared prefix is found in whole blocks, so at most this many tokens less one are computed again. */
export const blockSize = 32;

export type KeyValueBlock = {
  /** Number of its own: the name by which the block after it finds it again. */
  readonly id: number;
  /** [layer][position][key head][unit], rotated to the position. Single precision halves the memory; it is read back by all alike. */
  readonly keys: Float32Array;
  readonly values: Float32Array;
};

let blocksMade = 0;

/** `rowWidth` is the numbers that one position keeps over all layers. */
function newBlock(rowWidth: number): KeyValueBlock {
  blocksMade += 1;
  return { id: blocksMade, keys: new Float32Array(blockSize * rowWidth), values: new Float32Array(blockSize * rowWidth) };
}

/** The blocks of one sequence. */
export class KeyValues {
  readonly blocks: KeyValueBlock[] = [];
  readonly #rowWidth: number;
  #length = 0;

  constructor(rowWidth: number) {
    this.#rowWidth = rowWidth;
  }

  /** Positions that are filled. */
  get length(): number {
    return this.#length;
  }

  block(position: number): KeyValueBlock {
    return this.blocks[Math.floor(position / blockSize)] as KeyValueBlock;
  }

  /** Makes room for one position more, and returns the block that holds it. */
  grow(): KeyValueBlock {
    if (this.#length % blockSize === 0) this.blocks.push(newBlock(this.#rowWidth));
    this.#length += 1;
    return this.blocks.at(-1) as KeyValueBlock;
  }

  /** Takes a full block over from another sequence with the same tokens so far. Only at a block's border. */
  adopt(block: KeyValueBlock): void {
    this.blocks.push(block);
    this.#length += blockSize;
  }

  /** Puts the shared block in the place of an equal one of our own, so that it is kept once. */
  replaceLast(block: KeyValueBlock): void {
    this.blocks[this.blocks.length - 1] = block;
  }
}
