/**
 * A prompt that is too long, in the numbers of the engine's own message: clients compact at their vendor's wording of
 * it. Null where the message tells no numbers that fit, for none are made up.
 */
export function contextOverflow(message: string): { tokens: string; maximum: string } | null {
  const maximum = /context (?:length|window|size)\D{0,40}?(\d+)/i.exec(message)?.[1];
  const tokens = /(?:requested|passed|contains|prompt (?:is|has|of)|input \()\D{0,20}?(\d+)/i.exec(message)?.[1];
  return tokens !== undefined && maximum !== undefined && Number(tokens) > Number(maximum) ? { tokens, maximum } : null;
}
