/**
 * Starts the practice engine as a child process. The rest of the house knows this function and vLLM's wire.
 *
 *     await using engine = await startPracticeEngine({ seed: 7 });
 *     const models = await fetch(`${engine.url}/v1/models`);
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { AlidadeError, messageOf } from "../base/errors.ts";
import { BoundedOutput } from "../base/host/bounded-output.ts";
import { readJson } from "../base/schema/read-json.ts";
import type { LogprobsMode } from "./model/sampler.ts";

/** It takes a fraction of a second; a machine that needs longer than this is not going to run it. */
const startLimitMs = 30_000;
/** What a person needs to see of a crash. */
const stderrKept = 8_000;

export type PracticeEngineOptions = {
  /** The seed of the weights, and of requests without one. Default: 1. */
  seed?: number;
  /** 0, the default, is any free port. */
  port?: number;
  /** A folder with `config.json` and `model.safetensors` of a Llama in this engine's vocabulary. Left out: random weights. */
  weights?: string;
  /** Prompt and sampled tokens together. Left out: the folder's `max_position_embeddings`, or 65 536 for random weights. */
  maxModelLen?: number;
  /** The name under which it serves; `practice` when left out. */
  model?: string;
  /** `processed_logprobs`: those after temperature and cut, so that lists show which tokens the cut kept. Left out: raw ones. */
  logprobsMode?: LogprobsMode;
  /** The most tokens that it lists at one place; 20 when left out. */
  maxLogprobs?: number;
  /** Without the routes of disaggregated serving. */
  noScaleOut?: boolean;
  /** Ends the engine, also while it starts. */
  signal?: AbortSignal;
};

export type PracticeEngine = {
  /** Without `/v1`. */
  url: string;
  model: string;
  /** The last of what it wrote to stderr: empty while all is well. */
  stderrTail(): string;
} & AsyncDisposable;

const Ready = z.object({ url: z.url(), model: z.string() });

/** Resolves when it serves. Disposing ends the process. Throws `engine_unreachable` when it does not start. */
export async function startPracticeEngine(options: PracticeEngineOptions = {}): Promise<PracticeEngine> {
  options.signal?.throwIfAborted();
  const child = spawn(process.execPath, [serverPath(), ...toArguments(options)], { stdio: ["pipe", "pipe", "pipe"], env: environment() });
  const stderr = tailOf(child);
  const stop = () => end(child);
  try {
    const ready = await readyLine(child, stderr, options.signal);
    options.signal?.addEventListener("abort", stop, { once: true });
    return {
      ...ready,
      stderrTail: stderr,
      async [Symbol.asyncDispose]() {
        options.signal?.removeEventListener("abort", stop);
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Its neighbour: a .ts file in the sources, a .js file in what is published. */
function serverPath(): string {
  return fileURLToPath(new URL(`./server${extname(import.meta.url)}`, import.meta.url));
}

function toArguments({ noScaleOut, ...options }: PracticeEngineOptions): string[] {
  const { weights, port, seed, maxModelLen, model, logprobsMode, maxLogprobs } = options;
  const named = { "max-model-len": maxModelLen, "logprobs-mode": logprobsMode, "max-logprobs": maxLogprobs };
  const flags = { weights, port, seed, model, ...named };
  const words = Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}=${value}`]));
  return noScaleOut ? [...words, "--no-scale-out"] : words;
}

/** Flags meant for our own process (a debugger, a test runner, coverage) are not meant for the engine. */
function environment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _test, NODE_V8_COVERAGE: _coverage, ...rest } = process.env;
  return rest;
}

function tailOf(child: ChildProcess): () => string {
  const tail = new BoundedOutput(stderrKept, "end").follow(child.stderr);
  return () => tail.toString();
}

async function readyLine(child: ChildProcess, stderr: () => string, signal: AbortSignal | undefined): Promise<z.infer<typeof Ready>> {
  const limit = AbortSignal.timeout(startLimitMs);
  const waiting = new AbortController();
  const until = AbortSignal.any([limit, waiting.signal, ...(signal ? [signal] : [])]);
  try {
    if (!child.stdout) throw new Error("it has no stdout");
    const lines = createInterface({ input: child.stdout });
    const died = once(child, "exit", { signal: until }).then(([code, by]) => {
      throw new Error(`it ended with ${by ?? `exit code ${code}`}`);
    });
    const [line] = await Promise.race([once(lines, "line", { signal: until }), died]);
    return Ready.parse(readJson(String(line)));
  } catch (error) {
    signal?.throwIfAborted();
    const why = limit.aborted ? `it was not ready after ${startLimitMs / 1000} s` : messageOf(error);
    throw new AlidadeError("engine_unreachable", `The practice engine did not start: ${why}. ${stderr()}`.trim(), { cause: error });
  } finally {
    waiting.abort();
  }
}

/** Closing its stdin would do; the signal makes sure of it. Nothing it holds needs saving. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
