import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";

/** An image of the base image and a few lines more; the engine's cache keeps it for the next run. */
export async function testImage(name: string, lines: string): Promise<string> {
  const base = await ensureBaseImage({ signal: AbortSignal.timeout(120_000) });
  const folder = await mkdtemp(join(tmpdir(), "alidade-image-"));
  try {
    await writeFile(join(folder, "Dockerfile"), `FROM ${base}\n${lines}\n`);
    await promisify(execFile)("docker", ["build", "-q", "--network", "none", "-t", `alidade/test-${name}:1`, folder]);
    return `alidade/test-${name}:1`;
  } finally {
    await rm(folder, { recursive: true });
  }
}
