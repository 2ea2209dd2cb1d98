/** Token-in: the prompt that a server reports must be the one that it was given. */
import { type IdText, textOfIds } from "../../base/tokens/id-text.ts";
import type { SampleEvent } from "../engine.ts";

type Echo = Pick<Extract<SampleEvent, { type: "prompt" }>, "token_ids" | "text">;

/** The difference between the echoed prompt (null: none was echoed) and the given one; null where they are equal. */
export function promptComplaint(sent: IdText, echoed: Echo | null): string | null {
  if (echoed === null) return "no prompt ids to hold against those that were asked for";
  if (sent.is(textOfIds(echoed))) return null;
  return `another prompt (${echoed.token_ids.length} ids) than asked (${sent.length} ids)`;
}
