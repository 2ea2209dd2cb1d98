/** A real vLLM for tests: one server of a run is shared by all test files, for it takes a minute to start and 4 GB. */
import { type ChildProcess, spawn } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { quietPort } from "../../quiet-port.ts";
import { taughtModel, vllmPlace, vllmScripts } from "./place.ts";

/** A server that answers. `url` is without a trailing slash and without `/v1`; `weights` is where the model came from, by its own word. */
export type Vllm = AsyncDisposable & { url: string; model: string; weights: string };

/** A server that was started and may not answer yet. `env` hands it to other processes' `startVllm`. */
export type LaunchedVllm = AsyncDisposable & { url: string; env: Record<string, string> };

/** Loading takes about a minute on two idle cores; a busy machine may need several. */
const START_LIMIT_MS = 6 * 60_000;

/**
 * The server of this test run, warmed up; where none was started (a single test file run by hand), one of its own,
 * ended on dispose. ALIDADE_TEST_VLLM_URL points the tests at any other vLLM.
 *
 *     await using vllm = await startVllm(t.signal);
 *     const proxy = await startProxy({ engine: "vllm", baseUrl: vllm.url });
 */
export async function startVllm(signal: AbortSignal): Promise<Vllm> {
  const given = process.env.ALIDADE_TEST_VLLM_URL;
  if (given) return { ...(await ready(given.replace(/\/+$/, ""), processGone(process.env), signal)), async [Symbol.asyncDispose]() {} };
  return startOwnVllm(taughtModel(), signal);
}

/** A server of the test's own, with weights of its own: it may change them. Another 4 GB and another minute. */
export async function startOwnVllm(weights: string, signal: AbortSignal, flags: readonly string[] = []): Promise<Vllm> {
  const launched = await launchVllm(weights, flags);
  try {
    const answering = await ready(launched.url, processGone(launched.env), signal);
    return { ...answering, [Symbol.asyncDispose]: () => launched[Symbol.asyncDispose]() };
  } catch (error) {
    await launched[Symbol.asyncDispose]();
    throw error;
  }
}

/** Starts the installed server on a free port and returns at once. */
export async function launchVllm(weights: string = taughtModel(), flags: readonly string[] = []): Promise<LaunchedVllm> {
  const port = await quietPort();
  const url = `http://127.0.0.1:${port}`;
  const folder = await mkdtemp(join(tmpdir(), "alidade-vllm-"));
  const log = join(folder, "log");
  const output = openSync(log, "a");
  // stdin stays open as long as we live; the server ends with it. Its own process group takes the workers along.
  const child = spawn(join(vllmPlace(), "venv/bin/python"), [join(vllmScripts, "serve.py"), weights, String(port), ...flags], {
    stdio: ["pipe", output, output],
    detached: true,
  });
  // A test that forgets to dispose of it must not hold the process: the server goes when this process goes.
  child.unref();
  const env = { ALIDADE_TEST_VLLM_URL: url, ALIDADE_TEST_VLLM_PID: String(child.pid), ALIDADE_TEST_VLLM_LOG: log };
  return {
    url,
    env,
    async [Symbol.asyncDispose]() {
      await end(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Waits for health, then for one answer with logprobs: the first one takes seconds, and tests should not meet it. */
async function ready(url: string, gone: () => string | null, signal: AbortSignal): Promise<Omit<Vllm, keyof AsyncDisposable>> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(START_LIMIT_MS)]);
  while (!(await answers(`${url}/health`))) {
    const reason = gone();
    if (reason !== null) throw new Error(`vLLM ended before it was ready. ${reason}`);
    if (limit.aborted) throw new Error(`vLLM at ${url} was not ready in ${START_LIMIT_MS / 1000} s or the test was cancelled.`);
    await sleep(250);
  }
  const models = (await (await fetch(`${url}/v1/models`, { signal: limit })).json()) as { data: { id: string; root: string }[] };
  const served = models.data[0];
  if (!served) throw new Error(`vLLM at ${url} serves no model.`);
  const { id: model, root: weights } = served;
  const warmUp = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }], max_tokens: 2, logprobs: true, return_token_ids: true }),
    signal: limit,
  });
  if (!warmUp.ok) throw new Error(`vLLM at ${url} answered its first request with ${warmUp.status}: ${await warmUp.text()}`);
  await warmUp.arrayBuffer();
  return { url, model, weights };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}

/** Asks for the end of a process that may belong to another process: its log's last lines when it is gone, else null. */
function processGone(env: Record<string, string | undefined>): () => string | null {
  const { ALIDADE_TEST_VLLM_PID: pid, ALIDADE_TEST_VLLM_LOG: log } = env;
  if (!pid || !log) return () => null;
  return () => {
    try {
      process.kill(Number(pid), 0);
      return null;
    } catch {
      return `The end of ${log}:\n${readFileSync(log, "utf8").split("\n").slice(-15).join("\n")}`;
    }
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.ref();
  process.kill(-child.pid, "SIGKILL");
  await exited;
}
