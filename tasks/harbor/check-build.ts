import type { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { Build } from "../../base/schema/environment/build.ts";
import { readContext } from "../../sandboxes/index.ts";
import { taskError } from "../task-error.ts";

/** A context that no build may have is this task's fault, and not the run's. */
export async function checkBuild(build: z.input<typeof Build>, file: string, field = "environment"): Promise<void> {
  await readContext(Build.parse(build)).catch((error: unknown) => {
    throw error instanceof AlidadeError ? taskError(file, field, error.message) : error;
  });
}
