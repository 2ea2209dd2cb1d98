import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parquetWriteBuffer } from "hyparquet-writer";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("questions");

async function fileOf(name: string, rows: readonly unknown[]): Promise<string> {
  const path = join(scratch, name);
  const text = name.endsWith(".jsonl") ? rows.map((row) => `${JSON.stringify(row)}\n`).join("") : JSON.stringify(rows);
  await writeFile(path, text);
  return path;
}

const hashes = { question: "How many?", answer: "6 times 7 is <<6*7=42>>42.\n#### 1,042" };
const solved = { problem: "Find $x$.", level: "Level 3", type: "Algebra", solution: "So $x = \\boxed{\\frac{1}{2}}$." };
const given = { ...solved, answer: "\\frac{1}{2}", subject: "Algebra", unique_id: "test/algebra/7.json" };

test("rows of GSM8K ask for four signs, and rows of MATH for a box", async () => {
  const tasks = await loadTasks(await fileOf("rows.jsonl", [hashes, solved, given, { question: "2+2?", answer: 4 }]));
  assert.deepEqual(
    tasks.map(({ task_id, grader }) => [task_id, grader.math, grader.take]),
    [
      ["rows-1", "1,042", "hashes"],
      ["rows-2", "\\frac{1}{2}", "boxed"],
      ["test__algebra__7.json", "\\frac{1}{2}", "boxed"],
      ["rows-4", "4", "boxed"],
    ],
  );
  assert.match(tasks[0]?.instruction ?? "", /^How many\?\n\n.*#### ANSWER$/s);
  assert.match(tasks[1]?.instruction ?? "", /^Find \$x\$\.\n\n.*inside \\boxed\{\}\.$/s);
  assert.deepEqual(tasks[1]?.labels, { level: "Level 3", type: "Algebra" });
  assert.ok(tasks.every(({ instruction }) => !/1,042|42\.|So \$x/.test(instruction)));
});

test("one row of a list in .json is had by its number, and by its own id", async () => {
  const path = await fileOf("list.json", [hashes, given]);
  assert.deepEqual(
    (await loadTasks(`${path}#list-0`)).map(({ task_id }) => task_id),
    ["list-0"],
  );
  assert.equal((await loadTasks(`${path}#test__algebra__7.json`)).length, 1);
});

test("a table in .parquet is known by its columns", async () => {
  const path = join(scratch, "test-00000-of-00001.parquet");
  const columnData = Object.entries(hashes).map(([name, text]) => ({ name, data: [text, text], type: "STRING" as const }));
  await writeFile(path, Buffer.from(parquetWriteBuffer({ columnData })));
  const tasks = await loadTasks(path);
  assert.deepEqual(
    tasks.map(({ task_id, grader }) => [task_id, grader.math]),
    [
      ["test-00000-of-00001-0", "1,042"],
      ["test-00000-of-00001-1", "1,042"],
    ],
  );
});

for (const [title, row, says] of [
  ["whose answer is one of its choices", { ...hashes, choices: ["1", "2"] }, /:2: choices: stands beside the question/],
  ["about a text that is not in it", { ...hashes, context: "Once …" }, /context: stands beside the question/],
  ["of several answers", { ...hashes, answer: ["1", "2"] }, /answer: is \["1","2"\]: one text or number is compared/],
  [
    "whose answer lost digits",
    { ...hashes, answer: 2 ** 60 },
    /answer: is 1152921504606847000, which may have lost digits: write it as text/,
  ],
  ["without a result", { problem: "Prove it.", solution: "It follows." }, /solution: holds no result: write it behind ####/],
  ["with prose for an answer", { question: "Why?", answer: "Because.\nAnd so on." }, /answer: holds no result/],
  ["with an empty result", { question: "How many?", answer: "####" }, /answer: holds no result/],
  ["without a question", { question: " ", answer: "1" }, /question: is " ": write the question as text/],
  ["that is no row", 7, /the row: is no object with columns/],
] as const)
  test(`a row ${title} is left out by its line and column`, async () => {
    const leftOut: string[] = [];
    const path = await fileOf("bad.jsonl", [hashes, row]);
    const tasks = await loadTasks(path, { onLeftOut: ({ message }) => void leftOut.push(message) });
    assert.deepEqual([tasks.length, leftOut.length], [1, 1]);
    assert.match(leftOut[0] ?? "", says);
  });
