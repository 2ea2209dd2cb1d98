/** Reads a tarball that comes from elsewhere: whatever is wrong with it, or with where it comes from, is thrown to the reader. */
import { PassThrough, type Readable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Header } from "tar-stream";

export type ReadEntry = {
  header: Header;
  /** A file's bytes: read them before the next entry is asked for, or they are passed over. */
  content: AsyncIterable<Buffer>;
};

/** `unpack`: what decompresses it. A reader that leaves early ends the source too. */
export async function* readTar(source: Readable, unpack?: Transform): AsyncGenerator<ReadEntry, void, undefined> {
  const archive = extract();
  // The last small pipe makes leaving early destroy the source, and with it the work of an engine that packs.
  const feeding = pipeline([source, ...(unpack ? [unpack] : []), new PassThrough(), archive]);
  feeding.catch(() => {}); // thrown below
  try {
    for await (const entry of archive) {
      yield { header: entry.header, content: entry as unknown as AsyncIterable<Buffer> };
      entry.resume();
    }
    await feeding;
  } finally {
    source.destroy();
    archive.destroy();
  }
}
