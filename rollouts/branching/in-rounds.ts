/** Each place once, then each once more, and so on: a budget that ends early is spread over all of them. */
export function inRounds<Place>(places: readonly Place[], rounds: number): Place[] {
  return Array.from({ length: rounds }, () => places).flat();
}
