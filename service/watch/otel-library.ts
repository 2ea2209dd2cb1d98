/** OpenTelemetry's own packages, which the user installs where spans are asked for: optional peer dependencies. */
import { installCommand } from "../../base/host/install-command.ts";
import { loadOptional } from "../../base/host/optional-package.ts";

/** The releases that the tests run with. */
export const otelPackages = [
  "@opentelemetry/api@1.10.0",
  "@opentelemetry/sdk-trace@3.1.0",
  "@opentelemetry/resources@3.1.0",
  "@opentelemetry/exporter-trace-otlp-http@0.301.0",
];

/** The part of them that is used. */
export type OtelLibrary = {
  OTLPTraceExporter: new (options: { url?: string; timeoutMillis: number }) => OtelExporter;
  BatchSpanProcessor: new (options: { exporter: OtelExporter; exportTimeoutMillis: number; maxQueueSize: number }) => OtelProcessor;
  resourceFromAttributes(attributes: Record<string, string>): OtelResource;
  detectResources(options: { detectors: unknown[] }): OtelResource;
  defaultResource(): OtelResource;
  envDetector: unknown;
};
export type OtelResource = { merge(other: OtelResource): OtelResource };
/** `code` 0: the receiver took them. */
export type OtelExportResult = { code: number; error?: Error };
export type OtelExporter = {
  export(spans: OtelSpan[], done: (result: OtelExportResult) => void): void;
  shutdown(): Promise<void>;
};
export type OtelProcessor = { onEnd(span: OtelSpan): void; shutdown(): Promise<void> };
type OtelContext = { traceId: string; spanId: string; traceFlags: 1 };
type Seconds = [seconds: number, nanoseconds: number];
export type OtelSpan = {
  name: string;
  kind: 0 | 2;
  spanContext(): OtelContext;
  parentSpanContext?: OtelContext;
  startTime: Seconds;
  endTime: Seconds;
  duration: Seconds;
  status: { code: 0 | 2; message?: string };
  attributes: Record<string, string | number | boolean | string[]>;
  links: { context: OtelContext }[];
  events: never[];
  ended: true;
  resource: OtelResource;
  instrumentationScope: { name: string; version: string };
  droppedAttributesCount: 0;
  droppedEventsCount: 0;
  droppedLinksCount: 0;
};

/** Throws `config_invalid` with the command that installs them. `from`: where the user stands. */
export async function loadOtel(from?: string): Promise<OtelLibrary> {
  const missing = `spans need OpenTelemetry's packages, which are not installed here: ${installCommand(otelPackages)}`;
  const load = (name: string) => loadOptional(`@opentelemetry/${name}`, { missing, param: "otel", ...(from !== undefined && { from }) });
  const parts = [await load("sdk-trace"), await load("resources"), await load("exporter-trace-otlp-http")];
  return Object.assign({}, ...parts) as OtelLibrary;
}
