/**
 * Keeps admission records in the cache: `admissions/<task hash>.json`. A record belongs to a task's content, not to a run or a
 * folder. Copy that folder to take the records to another machine.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { cacheRoot } from "../../base/host/cache-folder.ts";
import { AdmissionRecord } from "../../base/schema/admission.ts";
import { tryJson } from "../../base/schema/read-json.ts";

export function admissionFile(taskHash: string): string {
  return join(cacheRoot(), "admissions", `${taskHash}.json`);
}

/** Returns null if there is no record of this version of the checks. A damaged one does not count. */
export async function readAdmission(taskHash: string, version: string): Promise<AdmissionRecord | null> {
  const text = await readFile(admissionFile(taskHash), "utf8").catch(() => null);
  if (text === null) return null;
  const record = AdmissionRecord.safeParse(tryJson(text)).data;
  return record?.task_hash === taskHash && record.version === version ? record : null;
}

/** Returns the file. Two processes may write it at once; a reader then sees one of the two, and never a half. */
export async function keepAdmission(record: AdmissionRecord): Promise<string> {
  const file = admissionFile(record.task_hash);
  await mkdir(dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(AdmissionRecord.parse(record), null, 1)}\n`);
  await rename(draft, file);
  return file;
}
