import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export type Place = AsyncDisposable & { home: string; workdir: string };

/** A home and a workdir with files in it, in a temporary folder. */
export async function temporaryPlace(files: Record<string, string>, path?: string): Promise<Place> {
  const folder = path ?? (await mkdtemp(join(tmpdir(), "alidade-harness-")));
  await mkdir(folder, { recursive: true });
  const place = { home: join(folder, "home"), workdir: join(folder, "work") };
  await mkdir(place.home);
  await writeBelow(place.workdir, files);
  return { ...place, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }) };
}

export async function writeBelow(folder: string, files: Record<string, string>) {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

export type Ended = { exit_code: number | null; stdout: string; stderr: string };

/** Runs a command with these variables alone and an open, silent standard input, as a sandbox may leave it. */
export function runCommand(argv: string[], options: { cwd: string; env: Record<string, string>; signal: AbortSignal }): Promise<Ended> {
  const [command = "", ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ["pipe", "pipe", "pipe"], killSignal: "SIGKILL" });
    const ended: Ended = { exit_code: null, stdout: "", stderr: "" };
    child.stdout.on("data", (chunk) => {
      ended.stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      ended.stderr += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ ...ended, exit_code: code }));
  });
}
