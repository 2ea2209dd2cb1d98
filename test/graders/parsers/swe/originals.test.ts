/** The recorded answers of swebench and SWE-smith are those that the pinned packages give today. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { swebenchPython } from "../../../interop/swebench/swebench.ts";
import { swesmithPython } from "../../../interop/swesmith/swesmith.ts";
import { need } from "../../../needs.ts";

const here = import.meta.dirname;
const tasks = join(here, "../../../tasks/swe");

for (const [needed, python, script, recorded] of [
  ["swebench", swebenchPython, join(here, "record.py"), join(here, "swebench.jsonl")],
  ["swesmith", swesmithPython, join(here, "smith/record.py"), join(here, "smith/recorded.jsonl")],
  ["swesmith", swesmithPython, join(tasks, "multilingual.py"), join(tasks, "multilingual.jsonl")],
] as const)
  test(`${recorded.slice(join(here, "../../..").length + 1)} holds what ${needed} says of the same logs and tables`, async (t) => {
    if (!(await need(t, needed))) return;
    const folder = await mkdtemp(join(tmpdir(), "alidade-originals-"));
    t.after(() => rm(folder, { recursive: true }));
    const out = join(folder, "answers.jsonl");
    await promisify(execFile)(python(), [script, out], { env: { PYTHONDONTWRITEBYTECODE: "1", PATH: process.env.PATH } });
    assert.equal(await readFile(out, "utf8"), await readFile(recorded, "utf8"));
  });
