/**
 * Tells the harness's own calls from those of commands. A command of the agent may use the same door, and the failure of
 * its calls does not end the harness's work. The first call of a session is the harness's, because no command runs before
 * its answer. The harness's own calls are those whose conversation goes back to that first call, or to another one with the
 * same tools in the same dialect, as after a compaction. A command can imitate that, so no rule may depend on this test
 * alone.
 */
import { workClasses } from "../../base/schema/session-spec.ts";
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
