/** Token-in: a server that says which prompt it sampled on is held to the one that was asked for. */
import { type IdText, textOfIds } from "../../tokens/id-text.ts";
import type { SampleEvent } from "../engine.ts";

type Echo = Pick<Extract<SampleEvent, { type: "prompt" }>, "token_ids" | "text">;

/** What is wrong with the prompt that the server echoed (null: it echoed none); null where it is the one asked for. */
export function promptComplaint(sent: IdText, echoed: Echo | null): string | null {
  if (echoed === null) return "no prompt ids to hold against those that were asked for";
  if (sent.is(textOfIds(echoed))) return null;
  return `another prompt (${echoed.token_ids.length} ids) than asked (${sent.length} ids)`;
}
