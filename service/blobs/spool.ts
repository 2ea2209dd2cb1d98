/** Bytes that come in pieces, kept in a file until they have been sent. */
import { createHash } from "node:crypto";
import { openAsBlob } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { temporary } from "../../base/host/temporary-folder.ts";

/** `bytes`: read from the file as they are sent, as often as they are. */
type Spooled = AsyncDisposable & { bytes: Blob; sha256: string };

/** Throws what the pieces throw. */
export async function spool(pieces: AsyncIterable<Uint8Array>): Promise<Spooled> {
  const folder = await mkdtemp(join(tmpdir(), temporary.blob));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const path = join(folder, "bytes");
    const hash = createHash("sha256");
    {
      await using file = await open(path, "wx", 0o600);
      for await (const piece of pieces) {
        hash.update(piece);
        await file.appendFile(piece);
      }
    }
    return { bytes: await openAsBlob(path), sha256: hash.digest("hex"), [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
