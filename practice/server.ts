/**
 * The practice engine as a program: a small transformer behind vLLM's wire on 127.0.0.1. With random weights it shows the
 * mechanics of sampling and recording. With the weights of a folder it can be trained. Prints one JSON line with its URL when
 * it listens.
 *
 *     node practice/server.ts --port 0 --seed 1
 *     node practice/server.ts --weights examples/train/model
 */
import { fstatSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { chatCompletions } from "./chat-completions.ts";
import { PracticeExchange } from "./exchange.ts";
import { defaultMaxLogprobs, PracticeModel } from "./model/practice-model.ts";
import type { LogprobsMode } from "./model/sampler.ts";
import { expandPictures, picturesOf } from "./pictures.ts";
import { DetokenizeRequest, knownId, parseBody, TokenizeRequest } from "./requests.ts";
import { generate, render } from "./scale-out.ts";
import { renderChat } from "./template.ts";
import { textCompletions } from "./text-completions.ts";
import { decodeBytes, encode, printableToken } from "./tokenizer/vocabulary.ts";
import { collectiveRpc, updateWeightVersion, weightInfo } from "./weight-updates.ts";
import { WireError } from "./wire-error.ts";

/** Not a version of vLLM, and it does not claim to be one. */
const version = "practice";

type PracticeRoute = (model: PracticeModel, exchange: PracticeExchange, server: Server & { running?: number }) => void | Promise<void>;

const routes = new Map<string, PracticeRoute>(
  Object.entries({
    "POST /v1/chat/completions": chatCompletions,
    "POST /v1/completions": textCompletions,
    "GET /v1/models": listModels,
    "POST /v1/chat/completions/render": scaledOut(render),
    "POST /inference/v1/generate": scaledOut(generate),
    "POST /tokenize": tokenize,
    "POST /detokenize": detokenize,
    "POST /reset_prefix_cache": resetPrefixCache,
    "POST /collective_rpc": collectiveRpc,
    "POST /update_weight_version": updateWeightVersion,
    "GET /weight_info": weightInfo,
    "GET /health": (_model, exchange) => exchange.text(200, "text/plain", ""),
    "GET /version": (_model, exchange) => exchange.json(200, { version }),
    "GET /metrics": (model, exchange, server) => exchange.text(200, "text/plain; version=0.0.4", metrics(model, server.running ?? 0)),
  } satisfies Record<string, PracticeRoute>),
);

const bodiless: ReadonlySet<PracticeRoute> = new Set([resetPrefixCache]);

/** Serves the model; the caller listens and closes. */
export function createPracticeServer(model: PracticeModel): Server {
  const server: Server & { running?: number } = createServer(async (request, response) => {
    const exchange = new PracticeExchange(request, response);
    server.running = (server.running ?? 0) + 1;
    try {
      const path = (request.url ?? "/").split("?")[0] as string;
      const route = routes.get(`${request.method} ${path}`);
      if (route === undefined) return exchange.json(...noRoute(path));
      if (request.method === "POST" && !bodiless.has(route)) await exchange.receive();
      await route(model, exchange, server);
    } catch (error) {
      await exchange.fail(error).catch(() => response.destroy());
    } finally {
      server.running -= 1;
    }
  });
  return server;
}

function noRoute(path: string): [number, unknown] {
  const known = [...routes.keys()].some((route) => route.endsWith(` ${path}`));
  return known ? [405, { detail: "Method Not Allowed" }] : [404, { detail: "Not Found" }];
}

/** The routes are there in any case, and say that their flag is missing. */
function scaledOut(route: PracticeRoute): PracticeRoute {
  return (model, exchange, server) => {
    if (!model.scaleOut) throw new WireError(403, "This endpoint needs --enable-scale-out.");
    return route(model, exchange, server);
  };
}

function listModels(model: PracticeModel, exchange: PracticeExchange): void {
  const card = {
    id: model.name,
    object: "model",
    created: Math.floor(Date.now() / 1000),
    owned_by: "alidade",
    root: model.name,
    parent: null,
    max_model_len: model.maxModelLen,
  };
  exchange.json(200, { object: "list", data: [card] });
}

function tokenize(model: PracticeModel, exchange: PracticeExchange): void {
  const request = parseBody(TokenizeRequest, exchange.body);
  model.check(request.model);
  const text = request.messages ? renderChat(request.messages, request.tools ?? [], request.add_generation_prompt ?? true) : request.prompt;
  if (typeof text !== "string") throw new WireError(400, "Give `prompt` or `messages`.", "prompt");
  const tokens = expandPictures(encode(text), picturesOf(request.messages ?? [])).ids;
  const token_strs = request.return_token_strs ? tokens.map(printableToken) : null;
  exchange.json(200, { count: tokens.length, max_model_len: model.maxModelLen, tokens, token_strs });
}

function detokenize(model: PracticeModel, exchange: PracticeExchange): void {
  const request = parseBody(DetokenizeRequest, exchange.body);
  model.check(request.model);
  exchange.json(200, { prompt: new TextDecoder("utf-8", { ignoreBOM: true }).decode(decodeBytes(request.tokens.map(knownId))) });
}

function resetPrefixCache(model: PracticeModel, exchange: PracticeExchange): void {
  model.policy.cache.reset();
  exchange.json(200, { success: true });
}

function metrics(model: PracticeModel, running: number): string {
  // The current request counts as running too.
  return `# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running ${running - 1}\n# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total ${model.policy.counted.sampledTokens}\n`;
}

/** The context of random weights, which have no limit of their own. */
const defaultMaxModelLen = 65_536;

const usage =
  "usage: server.ts [--weights FOLDER] [--port N] [--seed N] [--max-model-len N] [--model NAME] [--logprobs-mode raw_logprobs|processed_logprobs] [--max-logprobs N] [--no-scale-out]";

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      weights: { type: "string" },
      port: { type: "string", default: "0" },
      seed: { type: "string", default: "1" },
      "max-model-len": { type: "string" },
      model: { type: "string", default: "practice" },
      "logprobs-mode": { type: "string", default: "raw_logprobs" },
      "max-logprobs": { type: "string", default: String(defaultMaxLogprobs) },
      "no-scale-out": { type: "boolean", default: false },
    },
  });
  const maxModelLen = values["max-model-len"] === undefined ? undefined : toInteger("--max-model-len", values["max-model-len"], 2);
  const options = {
    name: values.model,
    seed: toInteger("--seed", values.seed, Number.MIN_SAFE_INTEGER),
    logprobsMode: toLogprobsMode(values["logprobs-mode"]),
    maxLogprobs: toInteger("--max-logprobs", values["max-logprobs"], 0),
    scaleOut: !values["no-scale-out"],
  };
  const model =
    values.weights === undefined
      ? new PracticeModel({ ...options, maxModelLen: maxModelLen ?? defaultMaxModelLen })
      : await PracticeModel.of(values.weights, { ...options, maxModelLen });
  const server = createPracticeServer(model);
  server.on("error", fail);
  server.listen(toInteger("--port", values.port, 0), "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}`, model: model.name })}\n`);
  });
  endWithParent();
}

/** A parent that died, however it died, closes our stdin. A terminal or a file there is no parent. */
function endWithParent(): void {
  process.on("disconnect", () => process.exit(0));
  const stdin = fstatSync(0, { throwIfNoEntry: false });
  if (!stdin?.isFIFO() && !stdin?.isSocket()) return;
  process.stdin.on("close", () => process.exit(0)).resume();
}

function toLogprobsMode(text: string): LogprobsMode {
  if (text === "raw_logprobs" || text === "processed_logprobs") return text;
  throw new Error(`--logprobs-mode is raw_logprobs or processed_logprobs, and not ${text}`);
}

function toInteger(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= least && text.trim() !== "") return value;
  throw new Error(`${flag} is a whole number from ${least}, and not "${text}"`);
}

function fail(error: unknown): never {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n${usage}\n`);
  process.exit(2);
}

if (import.meta.main) await main().catch(fail);
