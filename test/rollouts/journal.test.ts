import assert from "node:assert/strict";
import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { Journal } from "../../rollouts/records/journal.ts";

const Entry = z.strictObject({ id: z.string(), words: z.string() });
const form = { parse: (value: unknown) => Entry.parse(value), keyOf: ({ id }: z.infer<typeof Entry>) => id };

test("a journal finds entries that were added side by side, in this process and the next, and without a torn line", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-journal-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "verb.jsonl");
  const entries = ["a", "b", "c"].map((id) => ({ id, words: `päng ${id.repeat(9)}` }));
  {
    await using journal = await Journal.open(file, form);
    await Promise.all(entries.map((one) => journal.add(one)));
    for (const one of entries) assert.deepEqual(await journal.read(one.id), one);
    await journal.add({ id: "a", words: "again" });
    assert.equal(await journal.read("d"), null);
  }
  await appendFile(file, '{"id":"d"');
  await using next = await Journal.open(file, form);
  assert.deepEqual(await Promise.all(["a", "b", "c", "d"].map((id) => next.read(id))), [
    { id: "a", words: "again" },
    ...entries.slice(1),
    null,
  ]);
  assert.equal((await readFile(file, "utf8")).split("\n").length, 5);
  await next.remove();
  await assert.rejects(readFile(file), { code: "ENOENT" });
});
