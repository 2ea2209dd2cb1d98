/**
 * Pictures in a prompt: each is a run of one pad token, at a place that the engine tells. Before an engine has made that run, the
 * picture is a single pad; a prompt that is given as ids has it so.
 */

/** Where a picture's pads stand. */
export type ImageSpan = { start: number; length: number };

/** What an engine's pictures are made of, as a probe saw it. */
export type PictureTokens = {
  pad: number;
  /** The tokens around a picture that the template prints, whatever stands beside it; null where it prints none. */
  before: number | null;
  after: number | null;
};

/** The prompt with one pad a picture. Throws a RangeError where the spans are no runs of the prompt, in their order. */
export function foldImages(ids: ArrayLike<number>, spans: readonly ImageSpan[]): number[] {
  const folded: number[] = [];
  let at = 0;
  for (const { start, length } of spans) {
    if (start < at || length < 1 || start + length > ids.length)
      throw new RangeError(`no picture can stand at ${start} to ${start + length}`);
    for (; at < start; at++) folded.push(ids[at] as number);
    folded.push(ids[start] as number);
    at = start + length;
  }
  for (; at < ids.length; at++) folded.push(ids[at] as number);
  return folded;
}

/**
 * Why the prompt holds a pad that no template wrote: text that spells the pad's name takes the next picture's tokens, and a pad
 * that was sampled would become a place holder in the next prompt. null: every pad is a picture's, in the template's own frame.
 */
export function plantedPad(
  prompt: ArrayLike<number>,
  sampled: readonly number[],
  spans: readonly ImageSpan[],
  { pad, before, after }: PictureTokens,
): string | null {
  let next = 0;
  for (let at = 0; at < prompt.length; at++) {
    const span = spans[next];
    if (span?.start === at) {
      const [left, right] = [prompt[at - 1], prompt[at + span.length]];
      if ((before !== null && left !== before) || (after !== null && right !== after))
        return `the picture at token ${at} does not stand where the template puts one`;
      for (let inside = at; inside < at + span.length; inside++)
        if (prompt[inside] !== pad) return `token ${inside} of the picture at ${at} is no pad`;
      at += span.length - 1;
      next++;
    } else if (prompt[at] === pad) return `token ${at} of the prompt is the pad of a picture, and no picture is there`;
  }
  if (next < spans.length) return `the picture at token ${spans[next]?.start} stands behind the prompt, or within another one`;
  const at = sampled.indexOf(pad);
  return at === -1 ? null : `sampled token ${at} is the pad of a picture`;
}
