/** When a sandbox, or a service beside it, is ready. */
import { z } from "zod";

/** A timer of 2^31 ms or more fires at once; the grader's has two minutes on top. */
export const longestSeconds = 2_000_000;

export const Healthcheck = z.strictObject({
  command: z
    .union([z.string().min(1), z.array(z.string()).min(1)])
    .describe("a line for sh, or a program and its arguments; it ends with 0 when the sandbox is ready"),
  interval_seconds: z.number().positive().max(longestSeconds).default(30),
  timeout_seconds: z.number().positive().max(longestSeconds).default(30).describe("of each try"),
  retries: z.number().int().positive().default(3).describe("intervals in which it may fail, after the start period"),
  start_period_seconds: z.number().nonnegative().max(longestSeconds).default(0),
});
export type Healthcheck = z.infer<typeof Healthcheck>;
