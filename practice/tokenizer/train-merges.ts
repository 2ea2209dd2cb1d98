/**
 * Learns the merges of the tokenizer from text and prints `merges.ts`. They are data, not a build step: other merges
 * would be another vocabulary, in which every recorded token id means something else.
 *
 *     node practice/tokenizer/train-merges.ts 760 FILES… > practice/tokenizer/merges.ts
 */
import { readFileSync } from "node:fs";
import { pairKey, toWords } from "./bpe.ts";

/** The `count` most frequent pairs, each found after the ones before it were merged; ties go to the lower pair. */
export function trainMerges(text: Uint8Array, count: number): number[] {
  const words = toCountedWords(text);
  const merges: number[] = [];
  for (let merged = 256; merged < 256 + count; merged += 1) {
    const best = mostFrequentPair(words);
    if (best === null) break;
    const [left, right] = [Math.floor(best / 65536), best % 65536];
    merges.push(left, right);
    for (const { ids } of words)
      for (let at = 0; at + 1 < ids.length; at += 1) if (ids[at] === left && ids[at + 1] === right) ids.splice(at, 2, merged);
  }
  return merges;
}

type CountedWord = { ids: number[]; count: number };

function toCountedWords(text: Uint8Array): CountedWord[] {
  const counts = new Map<string, number>();
  for (const word of toWords(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return Array.from(counts, ([word, count]) => ({ ids: Array.from(word, (letter) => letter.charCodeAt(0)), count }));
}

function mostFrequentPair(words: readonly CountedWord[]): number | null {
  const counts = new Map<number, number>();
  for (const { ids, count } of words) {
    for (let at = 0; at + 1 < ids.length; at += 1) {
      const key = pairKey(ids[at] as number, ids[at + 1] as number);
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
  }
  let best: number | null = null;
  let highest = 1;
  for (const [key, count] of counts) {
    if (count < highest || (count === highest && (best === null || key > best))) continue;
    best = key;
    highest = count;
  }
  return best;
}

if (import.meta.main) {
  const [count, ...files] = process.argv.slice(2);
  const merges = trainMerges(Buffer.concat(files.map((file) => readFileSync(file))), Number(count));
  const lines = Array.from({ length: Math.ceil(merges.length / 24) }, (_, line) => merges.slice(line * 24, line * 24 + 24).join(", "));
  process.stdout.write(
    `/** The vocabulary: merge i makes token 256 + i of the pair at 2i. Printed by train-merges.ts from this project's own text. */\nexport const merges: readonly number[] = [\n  ${lines.join(",\n  ")},\n];\n`,
  );
}
