/**
 * An engine that removes secrets from its errors, its facts and the names that it gives. Every word of a server that goes to clients, records or the
 * terminal passes here. Sampled text passes unchanged.
 */

import { hideSecrets, keepSecret } from "../base/wire/secrets.ts";
import type { Engine, EngineKind, SampleEvent } from "./engine.ts";

/** The kind; its engines never repeat a key that they were given. */
export function withoutSecrets(kind: EngineKind): EngineKind {
  return {
    ...kind,
    create: (options) => {
      if (options.apiKey !== null) keepSecret(options.apiKey);
      return guarded(kind.create(options));
    },
  };
}

/** All methods, also those that an engine may leave out. */
function guarded(engine: Engine): Engine {
  return new Proxy(engine, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (name === "sample") return (...given: Parameters<Engine["sample"]>) => guardedEvents(target.sample(...given));
      if (name === "sampleInto") return guardedInto(target);
      return async (...given: unknown[]) => {
        try {
          const result: unknown = await value.apply(target, given);
          return tells.has(name) ? hiddenIn(result) : result;
        } catch (error) {
          throw hiddenIn(error);
        }
      };
    },
  });
}

/** Methods that return the server's own text about itself. */
const tells: ReadonlySet<string | symbol> = new Set(["probe", "models", "weightVersion"]);

function guardedInto(engine: Engine): Engine["sampleInto"] {
  return async (request, signal, take) => {
    try {
      await engine.sampleInto?.(request, signal, (events) => take(events.at(-1)?.type === "end" ? events.map(withoutNames) : events));
    } catch (error) {
      throw hiddenIn(error);
    }
  };
}

/** What a server calls its model and its weights is on the record beside what they sampled. */
function withoutNames(event: SampleEvent): SampleEvent {
  if (event.type !== "end") return event;
  const { engine_model, weights, misaligned } = event;
  return {
    ...event,
    engine_model: engine_model && hideSecrets(engine_model),
    ...(weights && { weights: weights.map((span) => ({ ...span, version: hideSecrets(span.version) })) }),
    ...(misaligned !== undefined && { misaligned: hideSecrets(misaligned) }),
  };
}

async function* guardedEvents(events: AsyncIterable<SampleEvent>): AsyncGenerator<SampleEvent> {
  try {
    for await (const event of events) yield withoutNames(event);
  } catch (error) {
    throw hiddenIn(error);
  }
}

/** The value with its texts hidden. An error stays the same object, for it may be a signal's reason. */
function hiddenIn(value: unknown): unknown {
  if (typeof value === "string") return hideSecrets(value);
  if (value instanceof Error) {
    const errors = new Set<Error>();
    collect(value, errors);
    for (const error of errors) hideInError(error);
    return value;
  }
  if (Array.isArray(value)) return value.map(hiddenIn);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, hiddenIn(inner)]));
}

/** An error with all that caused it; what caused itself is there once. */
function collect(error: unknown, found: Set<Error>): void {
  if (!(error instanceof Error) || found.has(error)) return;
  found.add(error);
  collect(error.cause, found);
  if (error instanceof AggregateError) for (const one of error.errors) collect(one, found);
}

function hideInError(error: Error): void {
  for (const field of ["message", "stack"] as const) {
    const text = error[field] ?? "";
    const hidden = hideSecrets(text);
    // Some errors of the platform cannot be written to, and hold no words of a server.
    if (hidden !== text) error[field] = hidden;
  }
}
