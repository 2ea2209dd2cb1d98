import type { ContinuityRecord, PromptPicture } from "../../base/schema/session-log.ts";
import type { IdText } from "../../base/tokens/id-text.ts";

/** How a call's prompt is made; `prompt_ids` where it was continued. */
export type Continued = {
  record: ContinuityRecord;
  prompt_ids: IdText | null;
  /** Pictures of the earlier call, whose pads must stand where they stood. */
  media?: readonly PromptPicture[] | undefined;
};
