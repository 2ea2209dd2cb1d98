/** Why a database of a service is not what it was before the agent. */
import { AlidadeError } from "../../base/errors.ts";
import type { MayDiffer } from "../bounded/ask-child.ts";
import { changedRows } from "../bounded/changed-rows.ts";
import type { ServiceFile, ServiceFiles } from "../work/service-files.ts";
import { committedFiles, databaseOf } from "./database.ts";

/** Null if nothing but `except` differs. `differing` receives the rows that differ. Throws `grader_error` if the database could not be read before the agent. */
export async function whyChanged(
  { service, file, except }: ServiceFile & { except: MayDiffer[] },
  services: ServiceFiles,
  differing: string[],
  signal: AbortSignal,
): Promise<string | null> {
  const at = (when: "before" | "after") => committedFiles(databaseOf(services, when, { service, file }));
  const [before, after] = [at("before"), at("after")];
  if (before?.why) throw new AlidadeError("grader_error", `${file} of the service ${service}, before the agent began: ${before.why}`);
  if (after?.why) return after.why;
  if (before === null) throw new AlidadeError("grader_error", `${file} of the service ${service} was not there before the agent began`);
  if (after === null) return "it is not there any more, or too large";
  const found = await changedRows(before, after, except, signal);
  if ("error" in found) {
    // What could be read before the agent, and cannot now, is what its calls left.
    if (!("error" in (await changedRows(before, before, except, signal)))) return `it cannot be compared any more: ${found.error}`;
    throw new AlidadeError("grader_error", `${file} of the service ${service} cannot be compared: ${found.error}`);
  }
  differing.push(...found.rows);
  return found.count === 0 ? null : `${found.count} rows differ: ${found.rows.join("; ")}`;
}
