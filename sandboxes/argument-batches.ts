/** Paths in as few commands as take them. Linux gives a command's arguments and environment two megabytes together. */
const mostBytes = 1_000_000;
/** Each has a time limit of its own, in which so many are removed or looked at on a busy machine. */
const mostArguments = 4_000;
/** The end of a text, and where it stands. */
const ownBytes = 9;

export function* argumentBatches(paths: Iterable<string>): Generator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    const size = Buffer.byteLength(path) + ownBytes;
    if (batch.length === mostArguments || (batch.length > 0 && bytes + size > mostBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(path);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
