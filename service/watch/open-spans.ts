/**
 * Sends spans of records to a receiver of OTLP over HTTP, by OpenTelemetry's own exporter. Spans are made of what is recorded
 * already, so they cost a call nothing; what a receiver does not take is lost to it alone.
 */
import { messageOf } from "../../base/errors.ts";
import { withinTime } from "../../base/host/within-time.ts";
import type { Watcher } from "../../base/schema/watcher.ts";
import { loadOtel, type OtelExporter, type OtelLibrary, type OtelResource, type OtelSpan } from "./otel-library.ts";
import { boundedText, type RecordedSpan, type SpanPlace } from "./recorded-span.ts";
import { spanOfSet, spansOfAttempt, spansOfCall } from "./spans-of.ts";

/** A receiver that hangs delays only the end of a process, and at most this long. */
const exportMs = 5_000;
/** Spans that wait for the receiver, about 500 bytes each. Further ones are lost. */
const mostSpans = 8_192;

/** `env`: the receiver is named by the standard variables. */
export const byVariables = "env";

export type OpenSpans = {
  /** URL of the receiver, without `/v1/traces`; or `env`. */
  url: string;
  version: string;
  /** Called once when the receiver stops taking spans, and once when it takes them again. */
  note: (text: string) => void;
};

/** Throws `config_invalid` where the packages are not installed. What is left is sent when it is disposed, within seconds. */
export async function openSpans({ url, version, note }: OpenSpans): Promise<Watcher & AsyncDisposable> {
  const library = await loadOtel();
  const exporter = new library.OTLPTraceExporter({ ...(url !== byVariables && { url: tracesUrl(url) }), timeoutMillis: exportMs });
  const processor = new library.BatchSpanProcessor({
    exporter: telling(exporter, note),
    exportTimeoutMillis: exportMs,
    maxQueueSize: mostSpans,
  });
  const resource = resourceOf(library, version);
  let isToldOf = false;
  const send = (make: () => RecordedSpan[]): void => {
    try {
      for (const span of make()) processor.onEnd(toOtelSpan(span, resource, version));
    } catch (error) {
      if (!isToldOf) note(`a span is left out: ${boundedText(messageOf(error))}; others of its kind are not told`);
      isToldOf = true;
    }
  };
  return {
    call: (call) => send(() => spansOfCall(call)),
    attempt: (attempt) => send(() => spansOfAttempt(attempt)),
    set: (set) => send(() => [spanOfSet(set)]),
    [Symbol.asyncDispose]: () =>
      withinTime(
        processor.shutdown().catch(() => undefined),
        exportMs,
      ),
  };
}

function tracesUrl(url: string): string {
  const base = url.replace(/\/+$/, "");
  return base.endsWith("/v1/traces") ? base : `${base}/v1/traces`;
}

/** OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before our own words. */
function resourceOf({ defaultResource, resourceFromAttributes, detectResources, envDetector }: OtelLibrary, version: string): OtelResource {
  const own = resourceFromAttributes({ "service.name": "alidade", "service.version": version });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

function telling(exporter: OtelExporter, note: (text: string) => void): OtelExporter {
  let isAway = false;
  return {
    shutdown: () => exporter.shutdown(),
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== 0;
        if (failed && !isAway) note(`spans are lost, their receiver does not take them: ${boundedText(messageOf(result.error))}`);
        if (!failed && isAway) note("the receiver takes spans again");
        isAway = failed;
        done(result);
      }),
  };
}

function toOtelSpan(span: RecordedSpan, resource: OtelResource, version: string): OtelSpan {
  const { name, place, parent, link, error } = span;
  const context = contextOf(place);
  return {
    name: boundedText(name),
    kind: span.isClient ? 2 : 0,
    spanContext: () => context,
    ...(parent !== null && { parentSpanContext: contextOf({ trace: place.trace, span: parent }) }),
    startTime: secondsOf(span.start),
    endTime: secondsOf(span.end),
    duration: secondsOf(Math.max(0, span.end - span.start)),
    status: error === null ? { code: 0 } : { code: 2, message: error },
    attributes: error === null ? span.attributes : { ...span.attributes, "error.type": error },
    links: link ? [{ context: contextOf(link) }] : [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: "alidade", version },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function contextOf({ trace, span }: SpanPlace): ReturnType<OtelSpan["spanContext"]> {
  return { traceId: trace, spanId: span, traceFlags: 1 };
}

function secondsOf(milliseconds: number): OtelSpan["startTime"] {
  return [Math.floor(milliseconds / 1000), Math.round((milliseconds % 1000) * 1e6)];
}
