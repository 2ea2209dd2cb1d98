/** Copies the skills of a task to the folder in which the harness looks for them. */
import { AlidadeError } from "../base/errors.ts";
import type { TreeFile } from "../base/files/file-tree.ts";
import { untilAborted } from "../base/host/until-aborted.ts";
import type { Task } from "../base/schema/task.ts";
import type { Harness } from "../harnesses/index.ts";
import type { Sandbox } from "../sandboxes/index.ts";

/** A skill is a page or two and a few scripts. Published collections have some hundred files. */
const bounds = { max_files: 2_000, max_bytes: 32 * 1024 * 1024 };

type Skilled = Pick<Sandbox, "readFiles" | "writeFiles">;

/**
 * The files are read from outside and written by their paths below the harness's folder. Links are left out, so no skill leads
 * to another place. Call it before the agent begins. Throws `sandbox_unavailable` if there are none.
 */
export async function deliverSkills(
  sandbox: Skilled,
  { environment: { skills: from } }: Pick<Task, "environment">,
  { skills: to }: Pick<Harness, "skills">,
  home: string,
  signal: AbortSignal,
): Promise<void> {
  if (from === undefined || to === undefined) return;
  const files = await untilAborted(skillsIn(sandbox, from), signal);
  await untilAborted(sandbox.writeFiles(files, `${home}/${to}`), signal);
}

async function skillsIn(sandbox: Skilled, folder: string): Promise<TreeFile[]> {
  const files = await sandbox.readFiles(folder, bounds).catch((error: unknown) => {
    throw broken(folder, error);
  });
  // Hidden folders at the top are not copied, as with Harbor: a repository's history is no skill.
  const copied = files.filter(({ path }) => !path.startsWith("."));
  if (!copied.some(({ path }) => /^[^/]+\/SKILL\.md$/.test(path))) throw broken(folder);
  return copied;
}

/** An agent without the skills would do another task. */
function broken(folder: string, cause?: unknown): AlidadeError {
  const isKnown = cause instanceof AlidadeError;
  if (cause !== undefined && !(isKnown && (cause.code === "not_found" || cause.code === "output_too_large"))) throw cause;
  const why = isKnown ? cause.message : "no folder in it has a SKILL.md";
  return new AlidadeError("sandbox_unavailable", `environment.skills is ${folder}: ${why}`, { cause });
}
