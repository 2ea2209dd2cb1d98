/**
 * The error for a prompt that is too long, with the numbers of the engine's own message: clients compact when they see
 * their vendor's wording. Null where the message has no matching numbers; none are invented.
 */
export function contextOverflow(message: string): { tokens: string; maximum: string } | null {
  const maximum = /context (?:length|window|size)\D{0,40}?(\d+)/i.exec(message)?.[1];
  const tokens = /(?:requested|passed|contains|prompt (?:is|has|of)|input \()\D{0,20}?(\d+)/i.exec(message)?.[1];
  return tokens !== undefined && maximum !== undefined && Number(tokens) > Number(maximum) ? { tokens, maximum } : null;
}
