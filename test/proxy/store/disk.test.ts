import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { LogEntry } from "../../../base/schema/session-log.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { DiskStore, readJsonLines } from "../../../proxy/store/index.ts";
import { goldenTrajectory } from "../../fakes/records/golden-session.ts";
import { LogBuilder, user } from "../../fakes/records/log-builder.ts";

test("a stranger's file beside the logs is no session, and every session that is listed can be read", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-disk-"));
  t.after(() => rm(folder, { recursive: true }));
  const store = new DiskStore(folder);
  const log = new LogBuilder();
  log.call({ messages: [user("hi")] });
  {
    await using own = await store.open("ses1");
    await own.append(...log.entries);
  }
  for (const stranger of ["ses1 (copy).jsonl", ".jsonl", "notes.txt", "ses1.jsonl.bak"]) await writeFile(join(folder, stranger), "{}\n");
  assert.deepEqual(await store.list(), ["ses1"]);
  for (const id of await store.list()) assert.equal((await store.read(id)).length, log.entries.length);
});

test("opening a session removes the draft that a killed replacement of its log left", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-disk-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "ses1.jsonl.new"), '{"type":');
  const store = new DiskStore(folder);
  await (await store.open("ses1"))[Symbol.asyncDispose]();
  assert.deepEqual((await readdir(folder)).toSorted(), ["ses1.jsonl"]);
});

test("a file that cannot be read is named, with what is wrong about it", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-disk-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "trajectories.jsonl");
  await mkdir(path);
  const message = `cannot read ${path}: EISDIR: illegal operation on a directory, read`;
  await assert.rejects(Array.fromAsync(readJsonLines(path, String)), { code: "store_error", message });
});

test("a line that another version wrote, or another program, is told in one sentence: its field, the value, and who wrote it", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-disk-"));
  t.after(() => rm(folder, { recursive: true }));
  const log = new LogBuilder();
  log.call({ messages: [user("hi")] });
  const [opened, ...rest] = log.entries;
  const trajectory = goldenTrajectory();
  const fidelity = { ...trajectory.fidelity, fingerprints: { ...trajectory.fidelity.fingerprints, alidade: "7.0.0" } };
  const schemas: Record<string, { parse(value: unknown): unknown }> = { logs: LogEntry, trajectories: Trajectory };
  const cases: [string, unknown[], string][] = [
    [
      "logs",
      [{ ...opened, alidade_version: "7.0.0" }, ...rest, { type: "mused" }],
      'type is "mused" (…); Alidade 7.0.0 may have written it',
    ],
    ["logs", [{ ...opened, schema_version: 1 }], "schema_version is 1 (expected 2); Alidade 0.0.0 may have written it"],
    ["logs", [{ ...opened, alidade_version: "7.0.0", mood: "odd" }], 'it has a mood, which is "odd"; Alidade 7.0.0 may have written it'],
    ["trajectories", [{ ...trajectory, fidelity, status: "pending" }], 'status is "pending" (…); Alidade 7.0.0 may have written it'],
    ["trajectories", [["a list"]], 'it is ["a list"] (…); another version of Alidade may have written it'],
    ["trajectories", [{}], "schema_version is not given (…); another version of Alidade may have written it"],
  ];
  for (const [kind, lines, why] of cases) {
    const path = join(folder, `${kind}.jsonl`);
    await writeFile(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const message = new RegExp(RegExp.escape(`${path} line ${lines.length} is not a record of ours: ${why}`).replace("…", "[^\n]+"));
    await assert.rejects(Array.fromAsync(readJsonLines(path, (value) => schemas[kind]?.parse(value))), { code: "store_error", message });
  }
});
