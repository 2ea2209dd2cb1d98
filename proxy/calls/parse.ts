/** The request in neutral form, as far as its client may ask for it. */
import type { NeutralRequest } from "../../base/schema/message.ts";
import type { Network } from "../../base/wire/network.ts";
import type { Exchange } from "../http/exchange.ts";
import { withImagesInside } from "../sandboxed/images-inside.ts";
import { assertFewAlternatives, assertOpenParameters } from "../sandboxed/sandboxed-request.ts";
import { assertReferencesInside } from "../sandboxed/schema-references.ts";
import type { Call } from "../session/call.ts";
import type { Session } from "../session/session.ts";
import { noteRead } from "./from-record/answer-from-record.ts";
import { sessionRecord } from "./from-record/session-record.ts";

/** Throws what the dialect does, and `request_invalid` for what a sandboxed client may not ask for. */
export async function parse(session: Session, exchange: Exchange, network: Network | undefined): Promise<NeutralRequest> {
  const read = new Set<Call>();
  const record = sessionRecord(session, exchange.dialect, (call) => read.add(call));
  const parsed = exchange.dialect.parse(exchange.body, exchange.headers, record);
  const request = exchange.choice ? { ...parsed, native: { ...parsed.native, choice: exchange.choice } } : parsed;
  await noteRead(session, read);
  if (!session.spec.sandboxed) return request;
  assertOpenParameters(session.spec, request);
  assertReferencesInside(request);
  assertFewAlternatives(request);
  return { ...request, messages: await withImagesInside(session, request.messages, exchange.signal, network) };
}
