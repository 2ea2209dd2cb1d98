/** For trainers that take single turns: whole prompt, one sample. Each row repeats the prompt, and a trainer computes it again. */
import type { Path, Selection } from "./selection.ts";
import { wholeNode } from "./selection.ts";

export const perCall: Selection = {
  name: "per-call",
  title: "a row for each call: its prompt as the engine saw it, then what it sampled; earlier samples are context",
  paths: (tree) =>
    tree.calls.flatMap((call): Path[] => {
      const end = tree.sample(call.call_id).at(-1);
      if (end === undefined) return [];
      return [
        {
          trace_id: `${call.call_id}`,
          agent: call.agent,
          pieces: tree.path(end.node_id).map(wholeNode),
          trains: (node) => node.call_id === call.call_id,
          scope: call.call_id,
          cut: false,
        },
      ];
    }),
};
