/** An image that is built from files beside the task. */
import { z } from "zod";

export const Build = z.strictObject({
  context: z.string().min(1).describe("folder of the files that the build may read, beside the task file"),
  dockerfile: z.string().min(1).default("Dockerfile").describe("the Dockerfile's path in the context"),
  args: z.record(z.string(), z.string()).default({}).describe("values of the Dockerfile's ARGs; they are no place for secrets"),
});
export type Build = z.infer<typeof Build>;
