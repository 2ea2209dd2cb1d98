/** A change that means nothing: it must earn no more than no change at all. */
import type { TreeFile } from "../../base/files/file-tree.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import { filesAt } from "../hidden-tests.ts";

/** Small files of the workdir, without git's own. */
const listFiles = "find . -name .git -prune -o -type f -size -64k -print | LC_ALL=C sort | head -n 5000";

/** One file of the workdir with a line more, and one new file. The same word gives the same edit. */
export async function randomEdit(word: string, sandbox: Sandbox, signal: AbortSignal): Promise<{ base: TreeFile[]; files: TreeFile[] }> {
  const { stdout } = await sandbox.exec(["sh", "-c", listFiles], { timeout_ms: 60_000, signal });
  const paths = stdout
    .split("\n")
    .filter((line) => line.startsWith("./"))
    .map((line) => line.slice(2));
  const noise = hashOf([word, "edit"]);
  const chosen = paths[Number.parseInt(noise.slice(0, 8), 16) % Math.max(1, paths.length)];
  const base = chosen === undefined ? [] : await filesAt(sandbox, [chosen]);
  const edited = base.map((file) => ({ ...file, content: Buffer.concat([file.content, Buffer.from(`\n${noise}\n`)]) }));
  return { base, files: [...edited, { path: `${noise.slice(0, 12)}.txt`, content: Buffer.from(`${noise}\n`), mode: 0o644 }] };
}
