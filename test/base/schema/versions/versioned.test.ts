import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import type { LogEntry } from "../../../../base/schema/session-log.ts";
import { Trajectory } from "../../../../base/schema/trajectory.ts";
import { recordVersions, type Versions } from "../../../../base/schema/versions/record-versions.ts";
import { versioned } from "../../../../base/schema/versions/versioned.ts";
import { DiskStore, readJsonLines } from "../../../../proxy/store/index.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";
import { goldenTrajectory } from "../../../fakes/records/golden-session.ts";
import { LogBuilder, user } from "../../../fakes/records/log-builder.ts";

const scratch = scratchFolder("versions");

/** A record whose field `note` was called `remark` in version 4. */
const made: Versions = { now: 5, fromBefore: ({ remark, ...rest }) => ({ ...rest, note: remark }) };
const Note = versioned(made, z.strictObject({ schema_version: z.literal(5), note: z.string() }));

test("a record of the version before is read as one of today, and says so", () => {
  const today = { schema_version: 5 as const, note: "hi" };
  assert.deepEqual(Note.parse({ schema_version: 4, remark: "hi" }), today);
  assert.deepEqual(Note.parse(today), today);
});

test("neither a record of two versions before nor one that states none is taken for one of the version before", () => {
  for (const stated of [3, undefined, "4", 4.5, null])
    assert.equal(Note.safeParse({ schema_version: stated, remark: "hi" }).success, false, String(stated));
  for (const value of [null, [], "hi", 4]) assert.equal(Note.safeParse(value).success, false);
});

test("a record of a newer version is refused in one sentence: its field, the value, and what to do", async () => {
  const lines = join(scratch, "trajectories.jsonl");
  const newer = recordVersions.trajectory.now + 1;
  await writeFile(lines, `${JSON.stringify({ ...goldenTrajectory(), schema_version: newer })}\n`);
  await assert.rejects(Array.fromAsync(readJsonLines(lines, (value) => Trajectory.parse(value))), {
    code: "store_error",
    message: `${lines} line 1 is not a record of ours: schema_version is ${newer} (this Alidade reads ${newer - 1} at most: update Alidade); Alidade 0.0.0 may have written it`,
  });
});

const entries = (): LogEntry[] => {
  const log = new LogBuilder();
  log.call({ messages: [user("hi")] });
  return log.entries;
};

/** Logs of the version before called an entry's `time` `at`. */
const oldLogs: Versions = { now: recordVersions.log.now, fromBefore: ({ at, ...entry }) => ({ ...entry, time: at }) };
const asOld = ({ time, ...entry }: LogEntry) => ({
  ...entry,
  at: time,
  ...(entry.type === "opened" && { schema_version: oldLogs.now - 1 }),
});

test("the first entry of a log states the version of all, and a log that goes on holds one version only", async () => {
  const path = join(scratch, "ses1.jsonl");
  const text = (all: object[]): string => all.map((one) => `${JSON.stringify(one)}\n`).join("");
  const today = entries();
  await writeFile(path, text(today.map(asOld)));
  const store = new DiskStore(scratch, oldLogs);
  assert.deepEqual(await store.read("ses1"), today);
  const sealed: LogEntry = { type: "sealed", time: 9, reason: "done" };
  {
    await using log = await store.open("ses1");
    await log.append(sealed);
  }
  // A reader that knows nothing of the version before reads all of it.
  assert.deepEqual(await new DiskStore(scratch).read("ses1"), [...today, sealed]);
});

test("no entry of a log of a newer version is read as one of today", async () => {
  const newer = recordVersions.log.now + 1;
  const all = entries().map((entry) => (entry.type === "opened" ? { ...entry, schema_version: newer } : entry));
  await writeFile(join(scratch, "ses2.jsonl"), all.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  const lines = await new DiskStore(scratch).read("ses2");
  assert.ok(lines.length > 1 && lines.every(({ type }) => type === "damaged"));
  assert.match(
    JSON.stringify(lines[1]),
    new RegExp(`schema_version of its log is ${newer}, and this Alidade reads ${newer - 1} at most: update Alidade`),
  );
});
