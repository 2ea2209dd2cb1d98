/**
 * The deeper look at a server that `alidade doctor` takes, by its own answers and through the engine's contract only:
 * what each thing is that training needs, and what to do about each gap. It samples a few short turns.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../base/errors.ts";
import { type Message, Role, type Sampling, type Tool } from "../base/schema/message.ts";
import { routingReasons } from "../base/schema/reasons/routing.ts";
import { supportReasons } from "../base/schema/reasons/support.ts";
import { type RolePlaces, rolePlaces } from "./chat/template-facts.ts";
import type { Engine, EngineFacts, SampleEvent } from "./engine.ts";

export type Finding = {
  what: string;
  found: string;
  /** ok: as it should be. gap: a loss, see `todo`. unknown: it could not be probed. */
  status: "ok" | "gap" | "unknown";
  todo: string | null;
};

/** A server stops within this after its client has left, if it ever does: SGLang looks every few seconds. */
const abortWaitMs = 15_000;

const tool: Tool = {
  name: "report",
  description: "Reports that all is well.",
  parameters: { type: "object", properties: { well: { type: "boolean" } }, required: ["well"] },
  kind: "function",
};

/** What models write when they call a tool, by the name of vLLM's parser for it. */
const toolForms: Record<string, string> = {
  hermes: '<tool_call>\n{"name": "report", "arguments": {"well": true}}\n</tool_call>',
  qwen3_coder: "<tool_call>\n<function=report>\n<parameter=well>\ntrue\n</parameter>\n</function>\n</tool_call>",
  llama3_json: '{"name": "report", "parameters": {"well": true}}',
  pythonic: "[report(well=True)]",
};

export async function examine(engine: Engine, facts: EngineFacts, signal: AbortSignal): Promise<Finding[]> {
  const model = facts.models[0];
  const findings = [...toFindings(facts)];
  if (model === undefined) return findings;
  // A hosted API bills each request and has no flags to change, so it is not examined.
  if (!facts.token_ids && engine.tokenize === undefined) return findings;
  findings.push(...(await lookAtRoles(engine, model, facts, signal)));
  findings.push(await lookAtTools(engine, model, signal));
  findings.push(await lookAtReasoning(engine, model, signal));
  findings.push(await lookAtAbort(engine, model, signal));
  findings.push(await lookAtPrefixCache(engine, signal));
  return findings;
}

function someOf(names: readonly string[]): string {
  return names.slice(0, 5).join(", ") + (names.length > 5 ? ` and ${names.length - 5} more` : "");
}

function* toFindings(facts: EngineFacts): Generator<Finding> {
  yield row("server", `${facts.engine} ${facts.version ?? "(version unknown)"} at ${facts.base_url}`, "ok");
  yield facts.models.length > 0 ? row("models", someOf(facts.models), "ok") : row("models", "none", "gap", "serve a model");
  const { adapters = [] } = facts;
  if (adapters.length > 0) yield row("adapters", `${someOf(adapters)}: each is a policy of its own`, "ok");
  yield* experts(facts);
  yield row(
    "context",
    facts.max_model_len === null ? "not said" : `${facts.max_model_len} tokens`,
    facts.max_model_len === null ? "unknown" : "ok",
  );
  yield row(
    "token ids",
    facts.token_ids ? "prompt and sampled" : "none",
    facts.token_ids ? "ok" : "gap",
    facts.token_ids ? null : facts.missing,
  );
  yield row("logprobs", facts.logprobs ? "one a token" : "none", facts.logprobs ? "ok" : "gap", facts.logprobs ? null : facts.missing);
  if (facts.logprobs) {
    yield logprobsAre(facts.logprob_semantics);
    if (facts.grammar_logprobs)
      yield facts.grammar_logprobs === "masked"
        ? row("under a grammar", "after its mask: forced tokens have 0.0 and are left out of the loss", "ok")
        : row(
            "under a grammar",
            "before its mask",
            "gap",
            "tokens that a grammar forced cannot be told from chosen ones: export without --allow-grammar",
          );
  }
  yield keptTokens(facts);
  yield tokenIn(facts);
  yield* pictures(facts);
  yield facts.weight_version
    ? row("weight version", facts.weight_version, "ok")
    : row(
        "weight version",
        "the server tells none",
        "gap",
        weightAdvice.get(facts.engine) ?? "stamp the policy with `policy` in the run file, or over the control listener",
      );
  const { template = null, tokenizer = null } = facts.fingerprints ?? {};
  yield row(
    "template",
    template ?? "not asked",
    template ? "ok" : "unknown",
    template ? null : "without a tokenizer route it is unknown whether two servers render alike",
  );
  yield row("tokenizer", tokenizer ?? "not asked", tokenizer ? "ok" : "unknown");
}

/** Yields no finding if the model is not known to have experts. */
function* experts({ experts, routing, routing_missing, engine }: EngineFacts): Generator<Finding> {
  const count = experts ? `${experts}: ` : "";
  if (routing) {
    const but = routing === "all" ? "" : ", in sessions that are not live";
    yield row("experts", `${count}which of them each token took is recorded${but}`, "ok");
  } else if (experts || routing_missing) {
    const cure = routing_missing ? routingReasons[routing_missing].cure : flagged.get(engine);
    const advice = cure === undefined ? pickedAgain : `${cure}; without it ${pickedAgain}`;
    yield row("experts", `${count}which of them each token took is not recorded`, "gap", advice);
  }
}

const flagged = new Map([
  ["vllm", "start vLLM with --enable-return-routed-experts"],
  ["sglang", "start SGLang with --enable-return-routed-experts"],
]);

const pickedAgain =
  "the trainer picks experts again, so its ratio differs from 1: give tokens less weight by it or reject them, and see `fidelity --trainer-logprobs`";

const neutralOnly =
  "train with temperature 1 and no truncation (purpose: train forces it), else they are not those of the sampling distribution";

function logprobsAre(kind: EngineFacts["logprob_semantics"]): Finding {
  if (kind === "processed") return row("logprobs are", "processed: after temperature and truncation", "ok");
  if (kind === "raw") return row("logprobs are", "raw: log-softmax of the logits, whatever the temperature", "ok", neutralOnly);
  return row("logprobs are", "raw or processed: a server without top_logprobs cannot be asked", "unknown", neutralOnly);
}

/** Without them calls that an operator cuts are left out of RL (`truncated_sampling`). */
function keptTokens({ support, engine, logprobs }: EngineFacts): Finding {
  const what = "under top_p, top_k";
  if (!support) {
    const cure = logprobs ? keptAdvice.get(engine) : undefined;
    return row(what, "which tokens were kept is not recorded: such calls are not trained", "gap", cure ?? supportReasons.not_told.cure);
  }
  const limit = `with a top_k of at most ${support.most}`;
  return row(what, `which tokens were kept is recorded, ${support.bounded ? `only ${limit}` : `surely ${limit}`}`, "ok");
}

const keptAdvice = new Map([
  ["vllm", "start vLLM with --logprobs-mode processed_logprobs, or train with purpose: train, which cuts nothing"],
  [
    "sglang",
    "serve with SGLang 0.5.23 or newer, without a router that hides /server_info, or train with purpose: train, which cuts nothing",
  ],
]);

const weightAdvice = new Map([
  ["vllm", "start vLLM with VLLM_SERVER_DEV_MODE=1 for /weight_info, or name the policy yourself: `policy` in the run file"],
  ["sglang", "set it with POST /update_weight_version after each update, or name the policy yourself: `policy` in the run file"],
]);

function tokenIn(facts: EngineFacts): Finding {
  if (facts.token_in) return row("token-in", "prompt ids are taken as given, on the chat route", "ok");
  const why = facts.token_in_missing ?? "it gives no token ids to go on from";
  return row("token-in", "none: every turn is rendered anew", "gap", `${why}; what it costs is row_inflation in the fidelity report`);
}

/** Nothing where the model takes none, or the server was not asked. */
function* pictures({ images, images_missing }: EngineFacts): Generator<Finding> {
  if (images_missing !== undefined) yield row("pictures", "not known: a turn that sees one is not trained", "unknown", images_missing);
  if (images === undefined) return;
  yield images.token_in
    ? row("pictures", "their tokens are known, and later turns go on from them", "ok")
    : row(
        "pictures",
        "their tokens are known, and each turn that sees one is rendered anew",
        "gap",
        "serve the model with vLLM 0.33 or newer and --enable-scale-out, whose generate route reads a sample as chat does; what it costs is row_inflation in the fidelity report",
      );
}

async function lookAtRoles(engine: Engine, model: string, facts: EngineFacts, signal: AbortSignal): Promise<Finding[]> {
  const { tokenize } = engine;
  const places: RolePlaces | null = tokenize ? await rolePlaces((source) => tokenize.call(engine, model, source, signal)) : null;
  if (places === null) return [row("roles", "could not be asked", "unknown", "the server has no tokenizer route: nothing is mapped")];
  const lists = facts.text_lists ?? [];
  const joined = Role.options.filter((role) => !lists.includes(role));
  const texts = row(
    "several texts",
    joined.length === 0 ? "printed as the template does" : `joined by line breaks for ${joined.join(", ")}`,
    "ok",
    joined.length === 0 ? null : "of their lists the template does not print all, or prints more",
  );
  return [...roleRows(places, facts), texts];
}

function roleRows(places: RolePlaces, facts: EngineFacts): Finding[] {
  return Object.entries(places).map(([place, fate]) => {
    const role = place.replace(" (later)", "");
    const sent = facts.role_mapping[place] ?? facts.role_mapping[role];
    if (fate === "printed") return row(`${place} turn`, "printed", "ok");
    return row(
      `${place} turn`,
      `${fate} by the template`,
      "gap",
      sent ? `sent as a ${sent} turn instead; each call says so (role_mapping)` : null,
    );
  });
}

/** A parser shows itself by what it cuts out of a text that was forced on the model; without a grammar, by a turn of its own. */
async function lookAtTools(engine: Engine, model: string, signal: AbortSignal): Promise<Finding> {
  const advice =
    "start the server with a tool parser for this model (vLLM: --enable-auto-tool-choice --tool-call-parser NAME; SGLang: --tool-call-parser NAME; llama-server: --jinja)";
  const parsed: string[] = [];
  let refused: string | null = null;
  for (const [name, text] of Object.entries(toolForms)) {
    // Servers put no grammar on reasoning; where the template can close it, what is forced is what comes after it.
    const chat_template_kwargs = { enable_thinking: false };
    const sampling = { temperature: 1, max_tokens: 128, structured_outputs: { choice: [text] }, chat_template_kwargs };
    const events = await sampleSome(engine, model, [tool], sampling, signal);
    if (!Array.isArray(events)) refused ??= events.failed;
    else if (events.some((event) => event.type === "tool-call" && event.name === tool.name)) parsed.push(name);
  }
  if (parsed.length > 0) return row("tool calls", `parsed, when written as ${parsed.join(", ")}`, "ok");
  const own = await sampleSome(engine, model, [tool], { temperature: 1, max_tokens: 128 }, signal);
  if (!Array.isArray(own)) return row("tool calls", `refused: ${own.failed.slice(0, 200)}`, "gap", advice);
  if (own.some((event) => event.type === "tool-call")) return row("tool calls", "parsed in a turn of the model's own", "ok");
  return row(
    "tool calls",
    refused ? "the model called none, and none could be forced on it" : "none of the known forms is parsed",
    "unknown",
    advice,
  );
}

async function lookAtReasoning(engine: Engine, model: string, signal: AbortSignal): Promise<Finding> {
  const events = await sampleSome(engine, model, [], { temperature: 1, max_tokens: 48 }, signal);
  if (!Array.isArray(events)) return row("reasoning", `a plain turn failed: ${events.failed.slice(0, 200)}`, "gap", null);
  if (events.some((event) => event.type === "reasoning-delta")) return row("reasoning", "a parser takes it out of the text", "ok");
  const tags = events.some((event) => event.type === "text-delta" && /<\/?think/.test(event.text));
  if (!tags) return row("reasoning", "none in a turn of 48 tokens", "ok");
  return row(
    "reasoning",
    "left in the text, between tags",
    "gap",
    "start the server with --reasoning-parser NAME, else harnesses show it to their users",
  );
}

/** Aborts a long turn and checks whether the server continues it. No result on a server that other clients use at the time. */
async function lookAtAbort(engine: Engine, model: string, signal: AbortSignal): Promise<Finding> {
  const before = await engine.running?.(signal).catch(() => null);
  if (before === null || before === undefined) return row("abort", "the server does not say what it is at", "unknown", null);
  if (before > 0) return row("abort", `not asked: the server is at ${before} other requests`, "unknown", "ask again when it is idle");
  const leave = new AbortController();
  const sampling = { temperature: 1, max_tokens: 4096, ignore_eos: true };
  let isOver = false;
  const sampled = sampleSome(engine, model, [], sampling, AbortSignal.any([signal, leave.signal])).finally(() => {
    isOver = true;
  });
  const isRunning = async () => ((await engine.running?.(signal)) ?? 0) > 0;
  const started = await poll(async () => isOver || (await isRunning()), signal);
  const wasOver = isOver;
  leave.abort(new Error("this is what is being asked"));
  await sampled;
  if (!started || wasOver) return row("abort", "the turn was over before it could be left", "unknown", null);
  const left = performance.now();
  const stopped = await poll(async () => !(await isRunning()), signal);
  if (stopped) return row("abort", `stopped ${Math.round(performance.now() - left)} ms after the client had left`, "ok");
  return row(
    "abort",
    `still running ${abortWaitMs / 1000} s after the client had left`,
    "gap",
    "abandoned calls cost their whole length: a router in between may keep the connection open",
  );
}

/** After a weight update, cached keys and values belong to other weights. This probe is the last one, because it empties the cache. */
async function lookAtPrefixCache(engine: Engine, signal: AbortSignal): Promise<Finding> {
  const found = (await engine.resetPrefixCache?.(signal).catch(() => "failed" as const)) ?? "not_supported";
  if (found === "reset") return row("prefix cache", "can be reset: PUT /policy and /resume do it", "ok");
  if (found === "failed")
    return row("prefix cache", "the server did not reset it now: it is at other requests", "unknown", "ask again when it is idle");
  return row("prefix cache", "nothing resets it", "gap", prefixAdvice.get(engine.name) ?? elsePrefixes);
}

const elsePrefixes = "after a weight update restart the server: what it kept of earlier prompts was computed by the old weights";
const prefixAdvice = new Map([
  [
    "vllm",
    "start vLLM with VLLM_SERVER_DEV_MODE=1 for /reset_prefix_cache: weights that are reloaded keep the old keys and values. Alidade's calls are kept from them by cache_salt, other clients of the server are not",
  ],
]);

async function poll(condition: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  const limit = performance.now() + abortWaitMs;
  while (performance.now() < limit) {
    if (await condition()) return true;
    await sleep(20, undefined, { signal });
  }
  return false;
}

async function sampleSome(
  engine: Engine,
  model: string,
  tools: Tool[],
  sampling: Sampling,
  signal: AbortSignal,
): Promise<SampleEvent[] | { failed: string }> {
  const messages: Message[] = [{ role: "user", parts: [{ type: "text", text: "Is all well? Report it with the tool, if you have one." }] }];
  const request = { model, messages, tools, tool_choice: null, sampling, call_id: "doctor" };
  try {
    return await Array.fromAsync(engine.sample(request, signal));
  } catch (error) {
    return { failed: messageOf(error) };
  }
}

function row(what: string, found: string, status: Finding["status"], todo: string | null = null): Finding {
  return { what, found, status, todo };
}
