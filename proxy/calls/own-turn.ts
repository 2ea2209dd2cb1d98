/**
 * Whose turn a call is. A command of the agent's may use the same door, and what its calls come to is no end of the
 * harness's work: so the harness's own are known by what the agent's have not come to see. The first call of a session is
 * the harness's, for no command runs before it was answered; its own are those whose conversation goes back to that one,
 * or to another that begins with the same tools in the same dialect, as after a compaction. A command can imitate that:
 * nothing may depend on this alone.
 */
import { workClasses } from "../../schema/session-spec.ts";
import type { Call } from "./call.ts";

/** `last`: the call, or the call that it goes on from; null: a conversation of which nothing is known. */
export function isOwnTurn(calls: ReadonlyMap<string, Call>, last: Call | null): boolean {
  const first = [...calls.values()].find(({ begun }) => workClasses.includes(begun.request_class));
  if (!first) return true;
  if (last === null) return false;
  const root = rootOf(calls, last);
  if (root === first) return true;
  return root.begun.dialect === first.begun.dialect && root.begun.tools_hash === first.begun.tools_hash;
}

function rootOf(calls: ReadonlyMap<string, Call>, call: Call): Call {
  let root = call;
  for (;;) {
    const earlier = calls.get(root.begun.retry_of ?? root.begun.parent_call_id ?? "");
    // Each names one that was begun before it.
    if (!earlier || earlier.begun.ordinal >= root.begun.ordinal) return root;
    root = earlier;
  }
}
