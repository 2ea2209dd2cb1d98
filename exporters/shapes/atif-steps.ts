/** One agent's calls as ATIF steps: new context first, then the turn, in the order of time. */
import { imageUrl } from "../../base/media/stored-picture.ts";
import { argumentsObject } from "../../base/schema/arguments.ts";
import type { Message, Part } from "../../base/schema/message.ts";
import { joinedText } from "../../base/schema/message-text.ts";
import type { CallRecord, Trajectory } from "../../base/schema/trajectory.ts";
import type { WholeTurn } from "../rows/whole-turns.ts";

export type AtifStep = {
  step_id: number;
  timestamp: string;
  source: "system" | "user" | "agent";
  message: string | AtifContent[];
  model_name?: string;
  reasoning_content?: string;
  tool_calls?: { tool_call_id: string; function_name: string; arguments: Record<string, unknown>; extra?: Record<string, unknown> }[];
  observation?: { results: { source_call_id?: string; content: string | AtifContent[]; extra?: Record<string, unknown> }[] };
  metrics?: AtifMetrics;
  is_copied_context?: true;
  llm_call_count?: 1;
  extra?: Record<string, unknown>;
};

type AtifContent = { type: "text"; text: string } | { type: "image"; source: { media_type: string; path: string } };

type AtifMetrics = {
  prompt_tokens?: number;
  completion_tokens?: number;
  cached_tokens?: number;
  prompt_token_ids?: number[];
  completion_token_ids?: number[];
  logprobs?: number[];
  extra?: Record<string, unknown>;
};

/**
 * `turns`: the calls with fully trainable tokens. Turns that never reached the harness are no steps, and neither are side
 * calls (a title, a quota).
 */
export function toAtifSteps(calls: CallRecord[], trajectory: Trajectory, turns: Map<string, WholeTurn>): AtifStep[] {
  const steps = new Steps();
  for (const call of calls.filter((call) => isStep(call, trajectory))) {
    for (const id of call.input) steps.add(id, trajectory.messages[id], timeOf(call.times.begun));
    const output = call.output === null ? undefined : trajectory.messages[call.output];
    if (output !== undefined) steps.say(call, output, turns.get(call.call_id));
  }
  return steps.list;
}

function isStep({ outcome, output, request_class }: CallRecord, { train_classes }: Trajectory): boolean {
  const reached = outcome === "delivered" || outcome === "partial";
  return reached && output !== null && train_classes.includes(request_class);
}

class Steps {
  readonly list: AtifStep[] = [];
  /** Ids of messages that are steps already. A message that comes again behind another context has another id. */
  readonly #ids = new Set<string>();
  readonly #texts = new Set<string>();

  /** A message of the context, unless it stands here already. */
  add(id: string, message: Message | undefined, timestamp: string): void {
    if (message === undefined || this.#ids.has(id)) return;
    this.#ids.add(id);
    const text = JSON.stringify(message);
    // Text that was not sampled here must not be trained, and no sample twice.
    const copied = this.#texts.has(text) || message.role === "assistant";
    this.#texts.add(text);
    const marks = copied ? { is_copied_context: true as const } : {};
    if (message.role === "assistant") this.#push({ timestamp, source: "agent", ...toAgentStep(message), ...marks });
    else this.#addContext(message, timestamp, marks);
  }

  /** The policy's turn of this call. */
  say(call: CallRecord, message: Message, turn: WholeTurn | undefined): void {
    if (call.output !== null) this.#ids.add(call.output);
    this.#texts.add(JSON.stringify(message));
    this.#push({
      timestamp: timeOf(call.times.finished ?? call.times.begun),
      source: "agent",
      ...(call.engine_model !== null && { model_name: call.engine_model }),
      ...toAgentStep(message),
      metrics: toMetrics(call, turn),
      llm_call_count: 1,
      extra: {
        call_id: call.call_id,
        request_class: call.request_class,
        outcome: call.outcome,
        match: call.match,
        ...(call.cause !== null && { cause: call.cause }),
      },
    });
  }

  #push(step: Omit<AtifStep, "step_id">): void {
    this.list.push({ step_id: this.list.length + 1, ...step });
  }

  #addContext({ role, parts }: Message, timestamp: string, marks: { is_copied_context?: true }): void {
    for (const part of parts) if (part.type === "tool_result") this.#observe(part, timestamp, marks);
    const rest = parts.filter((part) => part.type !== "tool_result");
    if (rest.length === 0 && parts.length > 0) return;
    const source = role === "system" || role === "developer" ? "system" : "user";
    this.#push({ timestamp, source, message: toContent(rest), ...marks });
  }

  /** Puts a result beside the call that requested it; any other result becomes a step of the system. */
  #observe(part: Part & { type: "tool_result" }, timestamp: string, marks: { is_copied_context?: true }): void {
    const caller = this.list.findLast((step) => step.tool_calls?.some((call) => call.tool_call_id === part.call_id));
    const extra = part.is_error ? { extra: { is_error: true } } : {};
    const content = toContent(part.content);
    const known = caller?.observation?.results ?? [];
    if (caller === undefined || known.some((result) => result.source_call_id === part.call_id)) {
      this.#push({ timestamp, source: "system", message: "", observation: { results: [{ content, ...extra }] }, ...marks });
    } else caller.observation = { results: [...known, { source_call_id: part.call_id, content, ...extra }] };
  }
}

function toAgentStep({ parts }: Message): Pick<AtifStep, "message" | "reasoning_content" | "tool_calls"> {
  const reasoning = parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  const calls = parts.flatMap((part) => (part.type === "tool_call" ? [toToolCall(part)] : []));
  return {
    message: toContent(parts),
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** ATIF requires an object: other arguments stand under a name that says so. */
function toToolCall({ id, name, arguments: raw, kind }: Part & { type: "tool_call" }): NonNullable<AtifStep["tool_calls"]>[number] {
  if (kind === "custom") return { tool_call_id: id, function_name: name, arguments: { input: raw } };
  const parsed = argumentsObject(raw);
  if (parsed !== null) return { tool_call_id: id, function_name: name, arguments: parsed };
  return { tool_call_id: id, function_name: name, arguments: { raw_arguments: raw }, extra: { malformed_arguments: true } };
}

/** The media types that ATIF knows; another image is named by its address. */
const imageType = /^data:(image\/(?:jpeg|png|gif|webp))[;,]/;

function toContent(parts: Part[]): string | AtifContent[] {
  if (!parts.some((part) => part.type === "image")) return joinedText(parts);
  const content = parts.flatMap((part): AtifContent[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type !== "image") return [];
    const path = imageUrl(part);
    const media_type = imageType.exec(path)?.[1];
    if (media_type === undefined) return [{ type: "text", text: `[image: ${path}]` }];
    return [{ type: "image", source: { media_type, path } }];
  });
  const texts = content.flatMap((each) => (each.type === "text" ? [each.text] : []));
  return texts.length === content.length ? texts.join("\n") : content;
}

function toMetrics({ usage, policy }: CallRecord, turn: WholeTurn | undefined): AtifMetrics {
  const counts: [keyof AtifMetrics & `${string}_tokens`, number | null | undefined][] = [
    ["prompt_tokens", usage?.prompt_tokens],
    ["completion_tokens", usage?.sampled_tokens],
    ["cached_tokens", usage?.cached_tokens],
  ];
  const metrics: AtifMetrics = {};
  for (const [name, count] of counts) if (typeof count === "number") metrics[name] = count;
  const version = policy.end?.version ?? null;
  if (version !== null) metrics.extra = { policy_version: version };
  if (turn === undefined) return metrics;
  return { ...metrics, prompt_token_ids: turn.prompt_ids, completion_token_ids: turn.token_ids, logprobs: turn.logprobs };
}

const timeOf = (milliseconds: number): string => new Date(milliseconds).toISOString();
