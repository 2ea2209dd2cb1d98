/**
 * Pieces as one, for a moment, in memory that is used again and again. A buffer of its own for every body and every
 * prompt that comes in is what makes the garbage collector walk through the whole heap: it counts what lies outside.
 */

/** What is longer gets memory of its own: it is rare, and the memory here is never given back. */
const mostBytes = 4 * 1024 * 1024;

let shared = Buffer.alloc(0);
let isInUse = false;

/** `use` gets all of them in order; what it is given is overwritten when it has returned, and may not be kept. */
export function withJoined<T>(pieces: readonly Buffer[], use: (joined: Buffer) => T): T {
  if (pieces.length === 1) return use(pieces[0] as Buffer);
  const size = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (isInUse || size > mostBytes) return use(Buffer.concat(pieces, size));
  if (shared.length < size) shared = Buffer.allocUnsafeSlow(Math.min(mostBytes, size * 2));
  isInUse = true;
  try {
    let at = 0;
    for (const piece of pieces) at += piece.copy(shared, at);
    return use(shared.subarray(0, size));
  } finally {
    isInUse = false;
  }
}
