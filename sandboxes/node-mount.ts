/** The Node that runs Alidade as a folder that can be mounted into a sandbox: tasks and harnesses need no other. */
import { createHash } from "node:crypto";
import { chmod, copyFile, link, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { cached } from "../base/host/cache-folder.ts";

/** Where it is mounted; `bin/node` below it. */
export const nodeInside = "/opt/alidade/node";

/**
 * A host folder that holds `bin/node`. Linux builds of Node want glibc and libstdc++ of the image they are mounted
 * over, and on another system than Linux this Node runs in the process sandbox only.
 */
export async function nodeMount(): Promise<string> {
  const path = createHash("sha256").update(process.execPath).digest("hex").slice(0, 8);
  return cached(`node/${process.version}-${process.platform}-${process.arch}-${path}`, async (folder) => {
    await mkdir(join(folder, "bin"));
    const place = join(folder, "bin", process.platform === "win32" ? "node.exe" : "node");
    // A link costs nothing; across file systems there is none.
    await link(process.execPath, place).catch(() => copyFile(process.execPath, place));
    await chmod(place, 0o755);
  });
}
