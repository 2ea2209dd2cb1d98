/** A unified diff between two texts, for people: Myers' algorithm over lines, bounded. Nothing is run to make it. */
import { splitLines } from "../files/parse-patch.ts";

/** Edits after which the rest counts as replaced: the search is quadratic in them, and a person reads no diff of that size. */
const mostEdits = 400;
/** Unchanged lines around a change: three, the default of diff and git. */
const context = 3;

type Edit = { kind: " " | "-" | "+"; line: string };

/** The hunks that turn `before` into `after`; empty when they are equal. */
export function diffLines(before: string, after: string): string {
  return toHunks(editsBetween(splitLines(before), splitLines(after)));
}

function editsBetween(before: string[], after: string[]): Edit[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const kept = (lines: string[]): Edit[] => lines.map((line) => ({ kind: " ", line }));
  const [old, fresh] = [before.slice(head, before.length - tail), after.slice(head, after.length - tail)];
  return [...kept(before.slice(0, head)), ...shortestEdits(old, fresh), ...kept(before.slice(before.length - tail))];
}

/** Furthest points on each diagonal for 0, 1, 2 … edits, then the way back through them. */
function shortestEdits(old: string[], fresh: string[]): Edit[] {
  const furthest = new Map<number, number>([[1, 0]]);
  const history: Map<number, number>[] = [];
  for (let edits = 0; edits <= Math.min(old.length + fresh.length, mostEdits); edits++) {
    history.push(new Map(furthest));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = startOf(furthest, diagonal, edits);
      while (x < old.length && x - diagonal < fresh.length && old[x] === fresh[x - diagonal]) x++;
      furthest.set(diagonal, x);
      if (x >= old.length && x - diagonal >= fresh.length) return wayBack(history, old, fresh);
    }
  }
  return [...old.map((line): Edit => ({ kind: "-", line })), ...fresh.map((line): Edit => ({ kind: "+", line }))];
}

function startOf(furthest: Map<number, number>, diagonal: number, edits: number): number {
  const [above, below] = [furthest.get(diagonal + 1) ?? -1, furthest.get(diagonal - 1) ?? -1];
  return diagonal === -edits || (diagonal !== edits && below < above) ? above : below + 1;
}

function wayBack(history: Map<number, number>[], old: string[], fresh: string[]): Edit[] {
  const edits: Edit[] = [];
  let [x, y] = [old.length, fresh.length];
  for (let step = history.length - 1; step >= 0; step--) {
    const furthest = history[step] as Map<number, number>;
    const diagonal = x - y;
    const [above, below] = [furthest.get(diagonal + 1) ?? -1, furthest.get(diagonal - 1) ?? -1];
    const down = diagonal === -step || (diagonal !== step && below < above);
    const fromX = down ? above : below;
    const fromY = fromX - (down ? diagonal + 1 : diagonal - 1);
    while (x > Math.max(fromX, 0) && y > Math.max(fromY, 0)) edits.push({ kind: " ", line: old[--x] as string }) && y--;
    if (step === 0) break;
    if (down) edits.push({ kind: "+", line: fresh[--y] as string });
    else edits.push({ kind: "-", line: old[--x] as string });
  }
  return edits.reverse();
}

function toHunks(edits: Edit[]): string {
  const hunks: string[] = [];
  let [oldLine, newLine] = [1, 1];
  for (let start = 0; start < edits.length; ) {
    if (edits[start]?.kind === " ") {
      oldLine++;
      newLine++;
      start++;
      continue;
    }
    const from = Math.max(0, start - context);
    const end = Math.min(edits.length, lastOfHunk(edits, start) + 1 + context);
    const part = edits.slice(from, end);
    const lead = start - from;
    const [oldCount, newCount] = [part.filter((edit) => edit.kind !== "+").length, part.filter((edit) => edit.kind !== "-").length];
    hunks.push(`@@ -${range(oldLine - lead, oldCount)} +${range(newLine - lead, newCount)} @@\n${part.map(toLine).join("")}`);
    oldLine += oldCount - lead;
    newLine += newCount - lead;
    start = end;
  }
  return hunks.join("");
}

/** The last change that is no further than two contexts from the one before it: closer ones share a hunk. */
function lastOfHunk(edits: Edit[], start: number): number {
  let last = start;
  for (let index = start + 1; index < edits.length && index - last <= 2 * context; index++) if (edits[index]?.kind !== " ") last = index;
  return last;
}

/** diff names the line before an empty range. */
function range(start: number, count: number): string {
  return count === 1 ? `${start}` : `${count === 0 ? start - 1 : start},${count}`;
}

function toLine(edit: Edit): string {
  return edit.line.endsWith("\n") ? edit.kind + edit.line : `${edit.kind}${edit.line}\n\\ No newline at end of file\n`;
}
