/** Spans of records: set, rollout and its stages, call and its tries. Names and numbers alone: no prompt, no token, no key. */
import type { Policy } from "../../base/schema/policy.ts";
import type { EndedAttempt, EndedCall, ToolTime, WatchedSet } from "../../base/schema/watcher.ts";
import { attributesOf, type RecordedSpan, type SpanAttributes, type SpanPlace, spanId, traceId } from "./recorded-span.ts";
import { type StageTime, stageTimes } from "./stage-times.ts";

/** A set has a trace of its own: one trace of all its rollouts would have millions of spans, which no backend shows. */
function placeOfSet(set_id: string): SpanPlace {
  return { trace: traceId("set", set_id), span: spanId("set", set_id) };
}

function placeOfAttempt({ rollout_id, attempt }: NamedAttempt): SpanPlace {
  return { trace: traceId("rollout", rollout_id), span: spanId("attempt", rollout_id, attempt) };
}

type NamedAttempt = { rollout_id: string; attempt: number };

function placeOfStage({ trace }: SpanPlace, { rollout_id, attempt }: NamedAttempt, name: StageTime["name"]): SpanPlace {
  return { trace, span: spanId("stage", rollout_id, attempt, name) };
}

export function spanOfSet({ set_id, key, harness, purpose, begun, ended }: WatchedSet): RecordedSpan {
  return {
    name: "set",
    place: placeOfSet(set_id),
    parent: null,
    start: begun,
    end: ended,
    attributes: attributesOf({
      "alidade.set.id": set_id,
      "alidade.set.key": key,
      "alidade.harness": harness,
      "alidade.purpose": purpose,
    }),
    error: null,
  };
}

/** The rollout's span and those of its stages. A second attempt is another `rollout` span of the same trace. */
export function spansOfAttempt(attempt: EndedAttempt): RecordedSpan[] {
  const { set_id, record, stored } = attempt;
  const place = placeOfAttempt(record);
  const root = {
    name: "rollout",
    place,
    parent: null,
    link: placeOfSet(set_id),
    start: record.times.queued ?? stored,
    end: stored,
    attributes: attributesOfAttempt(attempt),
    error: record.error?.code ?? record.verdict?.error?.code ?? null,
  };
  return [root, ...stagesOf(attempt, place)];
}

function attributesOfAttempt({ set_id, record }: EndedAttempt): SpanAttributes {
  const { verdict, summary, error } = record;
  const isNull = verdict?.reward == null;
  return attributesOf({
    "alidade.set.id": set_id,
    "alidade.group.id": record.group_id,
    "alidade.rollout.id": record.rollout_id,
    "alidade.attempt": record.attempt,
    "alidade.session.id": record.session_id,
    "alidade.task.id": record.task_id,
    "alidade.sample_index": record.sample_index,
    "alidade.harness": record.harness,
    "alidade.harness.version": record.harness_version,
    "alidade.stop_reason": record.stop_reason,
    "alidade.mask_reason": record.mask_reason,
    "alidade.reward": verdict?.reward,
    "alidade.reward.null_reason": isNull ? (error?.code ?? verdict?.error?.code ?? verdict?.status) : null,
    "alidade.verdict.status": verdict?.status,
    "alidade.verdict.tier": verdict?.tier,
    "alidade.grader": verdict?.grader,
    "alidade.turns": summary?.turns,
    "alidade.sampled_tokens": summary?.sampled_tokens,
    "alidade.trainable_tokens": summary?.trainable_tokens,
  });
}

function stagesOf(ended: EndedAttempt, { trace, span }: SpanPlace): RecordedSpan[] {
  const { rollout_id, attempt, harness, error } = ended.record;
  return stageTimes(ended).map(({ name, start, end, isCut }) => ({
    name: name === "run" ? `invoke_agent ${harness}` : name,
    place: placeOfStage({ trace, span }, ended.record, name),
    parent: span,
    start,
    end,
    attributes: attributesOf({
      "alidade.rollout.id": rollout_id,
      "alidade.attempt": attempt,
      ...(name === "run" && { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": harness }),
    }),
    error: isCut ? (error?.code ?? "cut") : null,
  }));
}

/** The call's span, those of its tries, and those of the tools whose results it brought. */
export function spansOfCall(call: EndedCall): RecordedSpan[] {
  const { begun, outcome } = call;
  const operation = operations.get(begun.dialect) ?? "chat";
  const { trace, parent } = aroundCall(call);
  const place = { trace, span: spanId("call", begun.call_id) };
  const root = {
    name: `${operation} ${begun.model}`,
    place,
    parent,
    isClient: true,
    start: begun.time,
    end: outcome.time,
    attributes: attributesOfCall(call),
    error: outcome.error?.code ?? null,
  };
  const tools = call.tools.map((tool, at) => spanOfTool(tool, { trace, span: spanId("tool", begun.call_id, at) }, parent));
  return [root, ...call.tries.map((tried) => spanOfTry(tried, place)), ...tools];
}

/** A tool runs in the sandbox, unseen: its time is that between the two calls. */
function spanOfTool({ id, name, started, ended }: ToolTime, place: SpanPlace, parent: string | null): RecordedSpan {
  const attributes = attributesOf({ "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": id });
  return { name: `execute_tool ${name}`, place, parent, start: started, end: ended, attributes, error: null };
}

/** A session that a client opened has a trace of its own, in which its calls stand side by side. */
function aroundCall({ session_id, spec }: EndedCall): { trace: string; parent: string | null } {
  const { rollout_id, attempt, sandboxed } = spec;
  if (!sandboxed || rollout_id === null) return { trace: traceId("session", session_id), parent: null };
  const place = placeOfAttempt({ rollout_id, attempt });
  return { trace: place.trace, parent: placeOfStage(place, { rollout_id, attempt }, "run").span };
}

/** Words of the semantic conventions for dialects that are not `chat`. */
const operations = new Map([
  ["openai-completions", "text_completion"],
  ["google-generate-content", "generate_content"],
]);

/** What the semantic conventions for generative AI have a word for has that word. */
function attributesOfCall({ session_id, spec, begun, tries, outcome }: EndedCall): SpanAttributes {
  const { temperature, top_p, max_tokens } = begun.effective_sampling;
  const { prompt_tokens, sampled_tokens, cached_tokens, reasoning_tokens } = outcome.usage;
  return attributesOf({
    "gen_ai.operation.name": operations.get(begun.dialect) ?? "chat",
    "gen_ai.provider.name": outcome.engine ?? "unknown",
    "gen_ai.agent.name": spec.harness,
    "gen_ai.conversation.id": session_id,
    "gen_ai.request.model": begun.model,
    "gen_ai.request.temperature": temperature,
    "gen_ai.request.top_p": top_p,
    "gen_ai.request.max_tokens": max_tokens,
    "gen_ai.response.model": outcome.engine_model,
    "gen_ai.response.finish_reasons": [outcome.finish_reason],
    "gen_ai.usage.input_tokens": prompt_tokens,
    "gen_ai.usage.output_tokens": sampled_tokens,
    "gen_ai.usage.cache_read.input_tokens": cached_tokens,
    "gen_ai.usage.reasoning.output_tokens": reasoning_tokens,
    "alidade.call.id": begun.call_id,
    "alidade.session.id": session_id,
    "alidade.rollout.id": spec.rollout_id,
    "alidade.attempt": spec.attempt,
    "alidade.task.id": spec.task_id,
    "alidade.purpose": spec.purpose,
    "alidade.request_class": begun.request_class,
    "alidade.dialect": begun.dialect,
    "alidade.tries": tries.length,
    ...policyAttributes(outcome.policy),
  });
}

function spanOfTry(tried: EndedCall["tries"][number], { trace, span }: SpanPlace): RecordedSpan {
  const { call_id, started, time, first_token, status, error, policy } = tried;
  return {
    name: "try",
    place: { trace, span: spanId("try", call_id, tried.try) },
    parent: span,
    isClient: true,
    start: started,
    end: time,
    attributes: attributesOf({
      "alidade.call.id": call_id,
      "alidade.try": tried.try,
      "alidade.engine": tried.engine_name,
      "alidade.first_token_ms": first_token && first_token - started,
      "http.response.status_code": status,
      ...serverOf(tried.engine),
      ...policyAttributes(policy),
    }),
    error: error?.code ?? null,
  };
}

/** Host and port alone: an address may hold a user and a password. */
function serverOf(url: string): Record<string, string | number | null> {
  const parsed = URL.parse(url);
  return { "server.address": parsed?.hostname ?? null, "server.port": parsed?.port ? Number(parsed.port) : null };
}

function policyAttributes(policy: Policy | null): Record<string, string | number | null | undefined> {
  return { "alidade.policy.version": policy?.version, "alidade.policy.step": policy?.step };
}
