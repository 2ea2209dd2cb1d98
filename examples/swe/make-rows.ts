/**
 * Makes ten SWE tasks of Python and C out of Debian's source packages and PyPI: an image each on this Docker engine, and a file
 * of rows with SWE-bench's columns. Sources are downloaded into the cache (~/.cache/alidade), held against their digests.
 *
 *     node examples/swe/make-rows.ts swe.jsonl && alidade check swe.jsonl --times 5
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { newId } from "../../base/schema/ids.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { say } from "../../cli/commands/command-line.ts";
import type { SandboxOwner } from "../../graders/grade.ts";
import { docker } from "../../sandboxes/docker.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { proveTask } from "../../tasks/made/prove-task.ts";
import { instanceImage, toolsImage } from "./images.ts";
import { recipes } from "./recipes.ts";
import { patchesOf, type RequiredNames, rowOf } from "./row.ts";
import { treesOf } from "./sources.ts";

const usage = `node examples/swe/make-rows.ts <rows.jsonl> [options]

  --only <ids>   instances with one of these words in their name, with commas between them
  --by-log       also for Python without the column \`alidade\`: the log of the tests is read, as other harnesses do (T1)
  --find         find the tests that must pass by running them, and keep them in required.json`;

const required = join(import.meta.dirname, "required.json");

type RowChoice = { out: string; only?: string | undefined; byLog?: boolean | undefined; find?: boolean | undefined; signal: AbortSignal };

export async function makeRows({ out, only, byLog = false, find = false, signal }: RowChoice): Promise<void> {
  const owner = { run_id: newId("run"), owner: await currentOwner() };
  const names = readJson(await readFile(required, "utf8")) as Record<string, RequiredNames>;
  const progress = (line: string): void => say(`  ${line}`);
  const tools = await toolsImage(signal, progress);
  const rows: object[] = [];
  for (const recipe of recipes.filter(({ instance_id }) => only?.split(",").some((word) => instance_id.includes(word)) ?? true)) {
    const trees = await treesOf(recipe, signal);
    const patches = await patchesOf(recipe, trees, owner, signal);
    const image = await instanceImage(recipe.instance_id, tools, trees.before, signal, progress);
    const row = (found: RequiredNames) => rowOf(recipe, patches, image, found, !byLog);
    if (find) {
      await writeFile(out, JSON.stringify(row({ FAIL_TO_PASS: ["to be found"], PASS_TO_PASS: [] })));
      names[recipe.instance_id] = await foundNames(out, trees.before, owner, signal);
      await writeFile(required, `${JSON.stringify(names, null, 1)}\n`);
    }
    const found = names[recipe.instance_id];
    if (found === undefined) throw new Error(`required.json has no ${recipe.instance_id}: run with --find`);
    progress(`${recipe.instance_id}: ${found.FAIL_TO_PASS.length} fail before it, ${found.PASS_TO_PASS.length} pass before and after`);
    rows.push(row(found));
  }
  await writeFile(out, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  say(`${rows.length} rows in ${out}`);
}

/** By running the one row of a file. */
async function foundNames(rows: string, before: TreeFile[], owner: SandboxOwner, signal: AbortSignal): Promise<RequiredNames> {
  const [task] = await loadTasks(rows);
  if (task === undefined) throw new Error(`${rows} has no task`);
  await docker.prepare([task.environment], { signal });
  const { fail_to_pass, pass_to_pass } = await proveTask(task, before, { backend: docker, owner, signal });
  return { FAIL_TO_PASS: fail_to_pass, PASS_TO_PASS: pass_to_pass };
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { only: { type: "string" }, "by-log": { type: "boolean" }, find: { type: "boolean" } },
  });
  const [out] = positionals;
  if (out === undefined) say(usage);
  else await makeRows({ out, only: values.only, byLog: values["by-log"], find: values.find, signal: AbortSignal.timeout(3_600_000) });
}
