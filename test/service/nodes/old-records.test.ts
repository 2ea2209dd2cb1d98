/** What a machine removes of its own records. */
import assert from "node:assert/strict";
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { OldRecords, removeOld } from "../../../service/nodes/old-records.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";

const scratch = scratchFolder("old-records");
const now = 1_800_000_000_000;
const hour = 3_600;

/** Names, by the hours since their last write. */
async function recordsAt(name: string, ages: Record<string, number>): Promise<string> {
  const folder = join(scratch, name);
  for (const room of ["sessions", "blobs"]) await mkdir(join(folder, room), { recursive: true });
  for (const [path, hours] of Object.entries(ages)) {
    await writeFile(join(folder, path), "x");
    const seconds = now / 1000 - hours * hour;
    await utimes(join(folder, path), seconds, seconds);
  }
  return folder;
}

const namesIn = async (folder: string) => [...(await readdir(join(folder, "sessions"))), ...(await readdir(join(folder, "blobs")))].sort();

test("logs and works that were last written too long ago go, and nothing else does", async () => {
  const folder = await recordsAt("some", {
    "sessions/ses-old.jsonl": 25,
    "sessions/ses-new.jsonl": 23,
    "sessions/ses-open.jsonl": 99,
    "sessions/notes.txt": 99,
    "blobs/aa.tar.gz": 25,
    "blobs/bb.tar.gz": 1,
    "attempts.jsonl": 99,
  });
  await removeOld({ folder, seconds: 24 * hour, isOpen: (id) => id === "ses-open" }, now, new AbortController().signal);
  assert.deepEqual(await namesIn(folder), ["bb.tar.gz", "notes.txt", "ses-new.jsonl", "ses-open.jsonl"]);
  assert.ok((await readdir(folder)).includes("attempts.jsonl"));
});

test("it goes on until its scope ends, and a machine without records has nothing to remove", async () => {
  const folder = await recordsAt("scope", { "sessions/ses-a.jsonl": 0 });
  const notes: string[] = [];
  const options = { seconds: hour, isOpen: () => false, note: (text: string) => void notes.push(text) };
  {
    await using _records = new OldRecords({ ...options, folder }, 1);
    await using _none = new OldRecords({ ...options, folder: join(scratch, "none") }, 1);
    await utimes(join(folder, "sessions/ses-a.jsonl"), 1, 1);
    await until(async () => (await namesIn(folder)).length === 0);
  }
  assert.deepEqual(notes, []);
});
