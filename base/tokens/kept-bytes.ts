/**
 * Bytes that will be kept for a while, in memory of their own. A small buffer is cut out of a pool, and as long as it
 * lives the whole pool does, with all that was cut out of it for a moment only.
 */
export function keptBytes(...pieces: readonly Uint8Array[]): Buffer {
  const all = Buffer.allocUnsafeSlow(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
