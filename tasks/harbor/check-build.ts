import { AlidadeError } from "../../errors.ts";
import { readContext } from "../../sandboxes/images/build/build-context.ts";
import type { Build } from "../../schema/environment/build.ts";
import { taskError } from "../task-error.ts";

/** A context that no build may have is this task's fault, and not the run's. */
export async function checkBuild(
  { context, dockerfile = "Dockerfile" }: Pick<Build, "context"> & Partial<Build>,
  file: string,
  field = "environment",
) {
  await readContext({ context, dockerfile }).catch((error: unknown) => {
    throw error instanceof AlidadeError ? taskError(file, field, error.message) : error;
  });
}
