/** A real llama-server for tests, over the model that was taught for vLLM: the same weights, another implementation. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { writeGguf } from "../llama-cpp/write-gguf.ts";
import { cachePlace, isReady, pinnedVersion } from "../place.ts";
import { taughtModel } from "../vllm/place.ts";

const scripts = import.meta.dirname;

/** Computed as install.sh does. */
function place(): string {
  return cachePlace("llama-server", pinnedVersion(scripts));
}

export async function llamaServerMissing(): Promise<string | null> {
  if (!isReady(place())) return "no llama-server of the pinned version is installed";
  return existsSync(taughtModel()) ? null : "the model that vLLM's install.sh teaches is not there";
}

/** `gguf`: the file that it serves. */
export type LlamaServer = AsyncDisposable & { url: string; gguf: string };

export async function startLlamaServer(signal: AbortSignal): Promise<LlamaServer> {
  await using scope = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "alidade-llama-server-"));
  scope.defer(() => rm(folder, { recursive: true, force: true }));
  const gguf = join(folder, "taught.gguf");
  await writeGguf(taughtModel(), gguf);
  const child = spawn("python3", [join(scripts, "serve.py"), gguf, join(taughtModel(), "chat_template.jinja")], {
    stdio: ["pipe", "pipe", "ignore"],
    env: { ...process.env, PYTHONPATH: join(place(), "python") },
    signal,
  });
  // An abort kills it, and ends in an error that nothing waits for.
  child.on("error", () => undefined);
  scope.defer(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /listening at (http:\S+)/.exec(line)?.[1];
    if (!url) continue;
    const release = scope.move();
    child.stdout.resume();
    return { url, gguf, [Symbol.asyncDispose]: () => release.disposeAsync() };
  }
  throw new Error("llama-server ended before it listened");
}
