/** Maps sampled nodes to the tokens that the sampling kept at the places of theirs. Row i of a call's file is about its sampled token i. */
import type { CallFinished } from "../../base/schema/session-log.ts";
import type { NodeBlob } from "../../base/schema/trajectory.ts";
import type { CallHistory } from "../log/call-history.ts";
import type { Branch, TokenTree } from "./token-tree.ts";

export const samplingSupport = "sampling_support";

export function supportBlobs(calls: readonly CallHistory[], tree: TokenTree, idOf: ReadonlyMap<Branch, string>): NodeBlob[] {
  return calls.flatMap((call) => {
    const support = call.finished?.support;
    if (!support || !namesItsTokens(call.finished)) return [];
    return sampledBranches(call, tree).flatMap((branch) => {
      const node_id = idOf.get(branch);
      if (node_id === undefined || branch.parent === null) return [];
      const span: [number, number] = [0, branch.depth - branch.parent.depth];
      return [
        {
          name: samplingSupport,
          dtype: "int32",
          shape: [support.rows, support.ids],
          node_id,
          span,
          row: branch.start,
          ref: support.sha256,
        },
      ];
    });
  });
}

/** A file of another call's tokens would pass every other check. */
export function namesItsTokens(finished: Pick<CallFinished, "support" | "sampled_ids"> | null): boolean {
  return finished?.support !== undefined && finished.support.rows === finished.sampled_ids?.length;
}

/** The branches of the call's sample, the first one first: other calls' prompts may split it. */
function sampledBranches(call: CallHistory, { sampleEnd }: TokenTree): Branch[] {
  const found: Branch[] = [];
  let branch = sampleEnd.get(call.call_id) ?? null;
  for (; branch?.sampled && branch.call === call; branch = branch.parent) found.unshift(branch);
  return found;
}
