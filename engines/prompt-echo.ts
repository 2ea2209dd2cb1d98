/** Token-in: a server that says which prompt it sampled on is held to the one that was asked for. */

/** What is wrong with the prompt that the server echoed (null: it echoed none); null where it is the one asked for. */
export function promptComplaint(asked: readonly number[], echoed: readonly number[] | null): string | null {
  if (echoed === null) return "no prompt ids to hold against those that were asked for";
  const isSame = asked.length === echoed.length && asked.every((id, at) => id === echoed[at]);
  return isSame ? null : `another prompt (${echoed.length} ids) than asked (${asked.length} ids)`;
}
