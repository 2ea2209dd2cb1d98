/** How the replayed part of a session went, by its log. */
import type { ReplayClass } from "../../base/schema/session-log.ts";
import type { ReplayReport } from "../../base/schema/trajectory.ts";
import { countBy } from "../count-by.ts";
import type { SessionHistory } from "./read-log.ts";

/** From the smallest difference to the largest. */
const ranks: readonly ReplayClass[] = ["equal", "values", "words", "structure"];

/** null: nothing of the session was replayed. */
export function replayReport({ compared, replay_ended }: Pick<SessionHistory, "compared" | "replay_ended">): ReplayReport | null {
  if (compared.length === 0 && replay_ended === null) return null;
  const worst = ranks.findLast((rank) => compared.some((one) => one.class === rank));
  const first = compared.find((one) => one.class === worst);
  return {
    how: replay_ended?.how ?? null,
    turns: replay_ended?.turns ?? new Set(compared.map(({ call_id }) => call_id)).size,
    classes: countBy(compared, (one) => one.class),
    difference: first?.difference ?? null,
    ...(replay_ended?.out_of_order !== undefined && { out_of_order: replay_ended.out_of_order }),
  };
}
