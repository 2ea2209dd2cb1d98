/** A folder of a test file's own. */
import { randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";

/** Its path. It is made before the file's first test and removed after its last one: loading a test file makes nothing. */
export function scratchFolder(name: string): string {
  const path = join(tmpdir(), `alidade-${name}-${randomBytes(8).toString("hex")}`);
  before(() => mkdir(path, { mode: 0o700 }));
  after(() => rm(path, { recursive: true, force: true }));
  return path;
}
