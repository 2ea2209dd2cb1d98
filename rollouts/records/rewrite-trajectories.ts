import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { Appender, readJsonLines } from "../../proxy/store/index.ts";

/**
 * A run's trajectories, each as `change` has it (null: without it), all at once. Lines that cannot be read stay as they
 * are: they are all that is left of a record. The caller owns the folder.
 */
export async function rewriteTrajectories(
  path: string,
  change: (one: Trajectory) => Trajectory | null | Promise<Trajectory | null>,
): Promise<void> {
  const file = join(path, "trajectories.jsonl");
  // Left by a process that was killed at this point.
  await rm(`${file}.new`, { force: true });
  await using copy = await Appender.open(`${file}.new`);
  const lines = readJsonLines<Trajectory | string>(
    file,
    (value) => Trajectory.parse(value),
    (line) => line,
  );
  for await (const line of lines) {
    const changed = typeof line === "string" ? line : await change(line);
    if (changed !== null) await copy.append(`${typeof changed === "string" ? changed : JSON.stringify(changed)}\n`);
  }
  await rename(`${file}.new`, file);
}
