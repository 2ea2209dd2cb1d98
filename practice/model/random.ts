/** Seeded randomness: the same seed gives the same numbers on every machine. */

export class SeededRandom {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;
  #spare: number | null = null;

  /** Every part of the seed counts with all its 53 bits, so that neighbouring seeds share nothing. */
  constructor(...seed: number[]) {
    let a = 0x9e3779b9;
    let b = 0x243f6a88;
    for (const part of seed) {
      a = scramble(a ^ (part | 0));
      b = scramble(b ^ (Math.floor(part / 2 ** 32) | 0) ^ a);
    }
    this.#a = a;
    this.#b = b;
    this.#c = scramble(a ^ b);
    // The first outputs still resemble the seed.
    for (let round = 0; round < 15; round += 1) this.#next();
  }

  /** Uniform in [0, 1), with 53 random bits. */
  uniform(): number {
    return ((this.#next() >>> 5) * 2 ** 26 + (this.#next() >>> 6)) / 2 ** 53;
  }

  /** Standard normal (Marsaglia's polar method). */
  normal(): number {
    if (this.#spare !== null) {
      const spare = this.#spare;
      this.#spare = null;
      return spare;
    }
    for (;;) {
      const x = 2 * this.uniform() - 1;
      const y = 2 * this.uniform() - 1;
      const square = x * x + y * y;
      if (square === 0 || square >= 1) continue;
      const scale = Math.sqrt((-2 * Math.log(square)) / square);
      this.#spare = y * scale;
      return x * scale;
    }
  }

  /** Chris Doty-Humphrey's sfc32: small, fast, and passes PractRand. */
  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }
}

/** MurmurHash3's finaliser. */
function scramble(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
