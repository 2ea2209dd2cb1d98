/**
 * Admission records: `admissions/<task hash>.json` in the cache, one for each content of a task, whatever run or folder it
 * is in. To carry them to another machine copy that folder.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { cacheRoot } from "../../base/host/cache-folder.ts";
import { AdmissionRecord } from "../../base/schema/admission.ts";
import { tryJson } from "../../base/schema/read-json.ts";

export function admissionFile(taskHash: string): string {
  return join(cacheRoot(), "admissions", `${taskHash}.json`);
}

/** null: there is none of this version of the checks. A damaged one is none. */
export async function readAdmission(taskHash: string, version: string): Promise<AdmissionRecord | null> {
  const text = await readFile(admissionFile(taskHash), "utf8").catch(() => null);
  if (text === null) return null;
  const record = AdmissionRecord.safeParse(tryJson(text)).data;
  return record?.task_hash === taskHash && record.version === version ? record : null;
}

/** Returns the file. Another process may write the same one: a reader sees the one or the other, and no half. */
export async function keepAdmission(record: AdmissionRecord): Promise<string> {
  const file = admissionFile(record.task_hash);
  await mkdir(dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(AdmissionRecord.parse(record), null, 1)}\n`);
  await rename(draft, file);
  return file;
}
