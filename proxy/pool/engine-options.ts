/** What an operator may say of an engine, in a file and over the control listener. */
import { z } from "zod";

export const callsAtOnce = z
  .number()
  .int()
  .min(1)
  .max(1_000_000)
  .optional()
  .describe(
    "calls that the engine is given at once, by all nodes together; more wait for a place, which is charged to no budget; absent: any number",
  );

export const resampleLost = z
  .boolean()
  .optional()
  .describe(
    "true: ask again where a connection went away before the first byte of an answer. The engine may have sampled the lost answer, and long answers are lost more often: each such try is counted as `resampled`. Absent or false: the call fails, and the harness may ask again",
  );
