/** A receiver of OTLP over HTTP: keeps each span that it is sent as JSON. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

const AttributeValue = z.looseObject({
  stringValue: z.string().optional(),
  intValue: z.number().optional(),
  doubleValue: z.number().optional(),
});
const SentSpan = z.looseObject({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: z.array(z.object({ key: z.string(), value: AttributeValue })),
  status: z.looseObject({ code: z.number() }),
  links: z.array(z.looseObject({ traceId: z.string(), spanId: z.string() })).default([]),
});
export type SentSpan = z.infer<typeof SentSpan>;

const Sent = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: z.array(z.object({ key: z.string(), value: AttributeValue })) }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(SentSpan) })),
    }),
  ),
});

export type OtlpReceiver = AsyncDisposable & {
  url: string;
  spans: SentSpan[];
  /** All bodies, as they came. */
  text: () => string;
  requests: { path: string; authorization: string | undefined }[];
  services: Set<unknown>;
};

/** `hangs`: it takes each request and never answers. */
export async function startReceiver({ hangs = false } = {}): Promise<OtlpReceiver> {
  const [spans, bodies, requests, services] = [[] as SentSpan[], [] as string[], [] as OtlpReceiver["requests"], new Set<unknown>()];
  const server = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString();
    requests.push({ path: request.url ?? "", authorization: request.headers.authorization });
    bodies.push(text);
    for (const { resource, scopeSpans } of Sent.parse(JSON.parse(text)).resourceSpans) {
      services.add(attributesOfSpan(resource)["service.name"]);
      spans.push(...scopeSpans.flatMap((scope) => scope.spans));
    }
    if (!hangs) response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    text: () => bodies.join("\n"),
    requests,
    services,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function attributesOfSpan({ attributes }: Pick<SentSpan, "attributes">): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
