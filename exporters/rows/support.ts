/** The tokens that the sampling kept: whether calls that were cut are trained, and the references of a row to their sets. */
import { z } from "zod";
import type { FlatRow, RowSupport } from "../../reconstruct/index.ts";

/** A trainer that does not read the sets would train such calls with a wrong ratio, in silence. So it is asked for. */
export const keptSets = z
  .enum(["leave_out", "train"])
  .default("leave_out")
  .describe(
    "calls that were sampled with `top_p`, `top_k` or `min_p`, and whose kept tokens are on record: `train` them only where the trainer renormalises over `support`",
  );

/** Those of the `length` tokens from `start` on; their own `start` counts from there. */
export function supportWithin({ support = [] }: Pick<FlatRow, "support">, start: number, length: number): RowSupport[] {
  return support.flatMap((part) => {
    const [begin, end] = [Math.max(part.start, start), Math.min(part.start + part.length, start + length)];
    return begin < end ? [{ ...part, start: begin - start, length: end - begin, row: part.row + begin - part.start }] : [];
  });
}
