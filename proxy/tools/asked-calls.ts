/** Finds the model's tool call that a tool run belongs to. It is the oldest call with the same name and arguments that has no run yet. */
import { hash } from "node:crypto";
import { canonicalArguments } from "../../base/schema/arguments.ts";
import { plainToolName } from "../../base/schema/environment/tool-servers.ts";
import { mintToolCallId } from "../../base/schema/ids.ts";
import { toolCallsOf } from "../../base/schema/message.ts";
import type { Session } from "../session/session.ts";

export type AskingCall = { call_id: string; tool_call_id: string };

export class AskedCalls {
  readonly #session: Session;
  /** What the model may call the tools of the relay. */
  readonly #names: ReadonlySet<string>;
  readonly #read = new Set<string>();
  readonly #open = new Map<string, AskingCall[]>();
  /** Calls whose turn also asks for other tools. */
  readonly #mixed = new Set<string>();

  /** `tools`: those of the relay, by their servers. */
  constructor(session: Session, tools: readonly { server: string; tool: string }[]) {
    this.#session = session;
    this.#names = new Set(tools.flatMap(({ server, tool }) => namesOf(server, tool)));
  }

  /** Returns the tool call and gives it to no other run. null: the model did not ask for this run. */
  take(server: string, tool: string, args: string): AskingCall | null {
    this.#readNew();
    const key = keyOf(args);
    for (const name of namesOf(server, tool)) {
      const asked = key === null ? undefined : this.#open.get(`${name} ${key}`)?.shift();
      if (asked) return asked;
    }
    return null;
  }

  /** True if the turn also asks for other tools, such as a shell. A command there can ask the relay first, and so take the tool call. */
  isMixed({ call_id }: AskingCall): boolean {
    return this.#mixed.has(call_id);
  }

  #readNew(): void {
    for (const call of this.#session.state.calls.values()) {
      if (call.outcome === null || this.#read.has(call.id)) continue;
      this.#read.add(call.id);
      const parts = call.turn === null ? [] : toolCallsOf(call.turn.message);
      if (!parts.every(({ name }) => this.#names.has(plainToolName(name)))) this.#mixed.add(call.id);
      for (const [index, part] of parts.entries()) {
        const key = part.kind === "custom" ? null : keyOf(part.arguments);
        if (key === null) continue;
        const place = `${plainToolName(part.name)} ${key}`;
        const known = this.#open.get(place) ?? [];
        known.push({ call_id: call.id, tool_call_id: mintToolCallId(call.id, index) });
        this.#open.set(place, known);
      }
    }
  }
}

/** The names under which harnesses show a tool to the model. A user's own harness may use the bare name. */
function namesOf(server: string, tool: string): string[] {
  const names = [`mcp__${server}__${tool}`, `mcp_${server}_${tool}`, `${server}__${tool}`, `${server}_${tool}`, tool];
  return [...new Set(names.map(plainToolName))];
}

/** null: the text is not valid JSON. */
function keyOf(args: string): string | null {
  const canonical = canonicalArguments(args);
  return canonical === null ? null : hash("sha256", canonical);
}
