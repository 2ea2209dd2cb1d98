/** Bytes of an incomplete character have no text. */
export function hexOf(bytes: Iterable<number>): string {
  return Array.from(bytes, (byte) => `<${byte.toString(16).padStart(2, "0")}>`).join("");
}
