import assert from "node:assert/strict";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Appender, readJsonLines } from "../../../proxy/store/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("appender");
let files = 0;
const fresh = (): string => join(scratch, `${files++}.jsonl`);

const Line = (value: unknown): { n: number } => {
  if (typeof value !== "object" || value === null || !("n" in value) || typeof value.n !== "number") throw new Error("n is no number");
  return { n: value.n };
};
const read = async (path: string): Promise<number[]> => (await Array.fromAsync(readJsonLines(path, Line))).map(({ n }) => n);

test("one append after the other is written, also when the next one is asked for in the same breath", { timeout: 10_000 }, async () => {
  const path = fresh();
  await using file = await Appender.open(path);
  for (let n = 0; n < 100; n++) await file.append(`{"n":${n}}\n`);
  assert.deepEqual(await read(path), [...Array(100).keys()]);
});

test("concurrent appends keep their order and whole lines", async () => {
  const path = fresh();
  await using file = await Appender.open(path);
  const padding = "x".repeat(5_000);
  await Promise.all(Array.from({ length: 500 }, (_, n) => file.append(`${JSON.stringify({ n, padding })}\n`)));
  assert.deepEqual(await read(path), [...Array(500).keys()]);
});

test("a file goes on where it was left, and the torn last line of a killed writer is cut off", async () => {
  const path = fresh();
  await writeFile(path, '{"n":1}\n{"n":2}\n{"n":3');
  assert.deepEqual(await read(path), [1, 2], "readers leave the torn line out");
  {
    await using file = await Appender.open(path);
    await file.append('{"n":4}\n');
  }
  assert.deepEqual(await read(path), [1, 2, 4]);
  assert.equal(await readFile(path, "utf8"), '{"n":1}\n{"n":2}\n{"n":4}\n');
});

test("a torn line longer than what is read at once is cut off too", async () => {
  const path = fresh();
  await writeFile(path, `{"n":1}\n{"n":2,"text":"${"y".repeat(300_000)}`);
  await using file = await Appender.open(path);
  await file.append('{"n":3}\n');
  assert.deepEqual(await read(path), [1, 3]);
});

test("a damaged line in the middle is an error that names the file and the line", async () => {
  const path = fresh();
  await writeFile(path, '{"n":1}\n{"n":\n{"n":3}\n');
  await assert.rejects(
    read(path),
    (error: Error & { code?: string }) => error.code === "store_error" && error.message.includes(`${path} line 2`),
  );
  await writeFile(path, '{"n":1}\n{"n":2}\n{"m":3}\n');
  await assert.rejects(read(path), /line 3 .*n is no number/);
});

test("lines are read in any size, and a file that is not there has none", async () => {
  const path = fresh();
  assert.deepEqual(await read(path), []);
  await writeFile(path, "");
  assert.deepEqual(await read(path), []);
  const long = "é".repeat(3_000_000);
  await appendFile(path, `{"n":1,"text":"${long}"}\n{"n":2}\n\n{"n":3}\n`);
  assert.deepEqual(await read(path), [1, 2, 3]);
});

test("an append to a closed file is refused in words, and closing twice is harmless", async () => {
  const file = await Appender.open(fresh());
  await file.append("1\n");
  await file[Symbol.asyncDispose]();
  await file[Symbol.asyncDispose]();
  await assert.rejects(
    file.append("2\n"),
    (error: Error & { code?: string }) => error.code === "store_error" && /closed/.test(error.message),
  );
});

test("closing waits for what was asked for before", async () => {
  const path = fresh();
  const file = await Appender.open(path);
  const appends = Array.from({ length: 20 }, (_, n) => file.append(`{"n":${n}}\n`));
  await file[Symbol.asyncDispose]();
  await Promise.all(appends);
  assert.equal((await read(path)).length, 20);
});

test("a place that cannot be written is an error with the path in it", async () => {
  await assert.rejects(
    Appender.open(join(scratch, "no-such-folder", "file.jsonl")),
    (error: Error & { code?: string }) => error.code === "store_error" && error.message.includes("no-such-folder"),
  );
});
