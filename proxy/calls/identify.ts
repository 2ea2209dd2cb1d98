/** What a request is the same as: its tools as they were first sent, and its fingerprint. */

import type { NeutralRequest, Tool } from "../../base/schema/message.ts";
import type { CallLabels } from "../dialects/index.ts";
import type { Exchange } from "../http/exchange.ts";
import { fingerprintOf } from "../restore/fingerprint.ts";
import type { RestoreResult } from "../restore/restore.ts";
import { withoutGrammar } from "../sandboxed/without-grammar.ts";
import type { Session } from "../session/session.ts";

export type IdentifiedRequest = {
  /** With the tools as the engine gets them. */
  request: NeutralRequest;
  labels: CallLabels;
  restored: RestoreResult;
  passed: ReturnType<typeof withoutGrammar>;
  toolsHash: string | null;
  fingerprint: string;
};

/** Writes down a tool list that is new. Throws the store's errors. */
export async function identify(
  session: Session,
  { dialect }: Exchange,
  parsed: Pick<IdentifiedRequest, "request" | "labels" | "restored">,
): Promise<IdentifiedRequest> {
  const { request, labels, restored } = parsed;
  const passed = withoutGrammar(session.spec, request);
  const { tools, hash: toolsHash }: { tools: Tool[]; hash: string | null } = await session.rememberTools(passed.tools);
  const { messages } = restored;
  const fingerprint = fingerprintOf({ dialect: dialect.name, agent: labels.agent, request, messages, toolsHash });
  return { ...parsed, request: { ...request, tools }, passed, toolsHash, fingerprint };
}
