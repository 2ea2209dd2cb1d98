/** pytest as a folder that a container can mount: the one of this machine's `python3`, with what it imports. */
import { execFile } from "node:child_process";
import { chmod, cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";

const modules = ["pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"];
const places = `import importlib, os
for name in ${JSON.stringify(modules)}: print(os.path.dirname(importlib.import_module(name).__file__))`;

export async function pytestMissing(): Promise<string | null> {
  const found = await pytestPackages().catch(() => null);
  return found === null ? "python3 has no pytest of version 8 or newer" : null;
}

/** Readable by every user. The caller removes it. */
export async function pytestFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "alidade-pytest-"));
  await chmod(path, 0o755);
  const filter = (from: string) => basename(from) !== "__pycache__";
  for (const from of await pytestPackages()) await cp(from, join(path, basename(from)), { recursive: true, filter });
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

async function pytestPackages(): Promise<string[]> {
  const { stdout } = await promisify(execFile)("python3", ["-I", "-c", places]);
  return stdout.trim().split("\n");
}
