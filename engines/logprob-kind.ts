/**
 * What the server's logprobs are, told from the best token's at temperature 1 (`cold`) and 2 (`warm`): raw ones ignore
 * the temperature; after it the best token of a two times hotter distribution is less likely. In nats; null is none.
 */
export function logprobKind(cold: number | null, warm: number | null): "raw" | "processed" {
  return warm !== null && Math.abs(warm - (cold ?? 0)) < 1e-3 ? "raw" : "processed";
}
