/**
 * What the server's logprobs are, told from the best token's at temperature 1 (`cold`) and 2 (`warm`): raw ones ignore
 * the temperature; after it the best token of a two times hotter distribution is less likely. In nats. null: a server
 * that gives the sampled tokens' logprobs and no `top_logprobs` cannot be asked, for two samples may be two tokens.
 */
export function logprobKind(cold: number | null, warm: number | null): "raw" | "processed" | null {
  if (cold === null || warm === null) return null;
  return Math.abs(warm - cold) < 1e-3 ? "raw" : "processed";
}
