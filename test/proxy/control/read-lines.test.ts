import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { readLines } from "../../../proxy/control/read-lines.ts";

const Line = z.strictObject({ n: z.number() });

async function* cutAt(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

test("lines are read wherever the pieces of a body are cut, and blank ones are passed over", async () => {
  const text = '{"n":1}\n\n  \r\n{"n":2}\r\n{"n":3}';
  for (let size = 1; size <= text.length; size++)
    assert.deepEqual(await readLines(cutAt(text, size), Line), [{ n: 1 }, { n: 2 }, { n: 3 }]);
  assert.deepEqual(await readLines(cutAt("", 1), Line), []);
});

test("what is wrong is named by its line", async () => {
  for (const size of [1, 3, 99])
    await assert.rejects(readLines(cutAt('{"n":1}\n\n{"n":"x"}\n{"n":3}', size), Line), {
      code: "request_invalid",
      param: "n",
      message: /^line 3: n is "x": /,
    });
});
