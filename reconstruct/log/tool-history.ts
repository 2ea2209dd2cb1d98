/** The servers of tools of a session and what ran there, gathered from the log in any order of its entries. */
import { hashOf } from "../../base/schema/ids.ts";
import type { ToolBegun, ToolFinished } from "../../base/schema/log/tool-entries.ts";
import type { LogEntry } from "../../base/schema/session-log.ts";
import type { ToolRun } from "../../base/schema/trajectory.ts";

type ToolEntry = Extract<LogEntry, { type: "tool_server" | "tool_begun" | "tool_finished" }>;

export class ToolHistory {
  readonly #servers = new Map<string, string>();
  readonly #begun: ToolBegun[] = [];
  readonly #finished = new Map<string, ToolFinished>();

  take(entry: ToolEntry): void {
    if (entry.type === "tool_server") this.#servers.set(entry.server, entry.tools_sha256);
    else if (entry.type === "tool_begun") this.#begun.push(entry);
    else this.#finished.set(entry.run_id, entry);
  }

  /** Over the lists of all servers; null where there are none. */
  hash(): string | null {
    return this.#servers.size === 0 ? null : hashOf([...this.#servers].sort());
  }

  /** undefined: the session has no servers. */
  runs(): ToolRun[] | undefined {
    if (this.#servers.size === 0) return undefined;
    return this.#begun.toSorted((a, b) => a.ordinal - b.ordinal).map((begun) => toRun(begun, this.#finished.get(begun.run_id)));
  }
}

function toRun({ type: _, time, ...begun }: ToolBegun, finished: ToolFinished | undefined): ToolRun {
  return {
    ...begun,
    unasked: begun.tool_call_id === null,
    outcome: outcomeOf(finished),
    ...(finished?.failure && { failure: finished.failure }),
    result_sha256: finished?.result_sha256 ?? null,
    parts: finished?.parts ?? [],
    times: { begun: time, finished: finished?.time ?? null },
  };
}

function outcomeOf(finished: ToolFinished | undefined): ToolRun["outcome"] {
  if (finished === undefined) return "unknown";
  if (finished.failure !== undefined) return "failed";
  return finished.is_error ? "error" : "ok";
}
