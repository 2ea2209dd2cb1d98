/** How a call hangs on its parent. */
import type { EdgeCause, EdgeMatch } from "../../base/schema/trajectory.ts";
import type { CallHistory } from "../log/call-history.ts";

export type Edge = {
  parent: CallHistory | null;
  match: EdgeMatch;
  cause: EdgeCause | null;
  /** Leading tokens of the prompt that are the parent's prompt and sample; the tree follows the parent that far. */
  shared: number;
  difference: { position: number; parent_text: string | null; child_text: string | null } | null;
};
