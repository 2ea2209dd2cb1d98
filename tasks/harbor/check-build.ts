import { AlidadeError } from "../../errors.ts";
import { readContext } from "../../sandboxes/images/build-context.ts";
import { taskError } from "../task-error.ts";

/** A context that no build may have is this task's fault, and not the run's. */
export async function checkBuild(context: string, file: string): Promise<void> {
  await readContext({ context, dockerfile: "Dockerfile" }).catch((error: unknown) => {
    throw error instanceof AlidadeError ? taskError(file, "environment", error.message) : error;
  });
}
