/** What was tried, with what came of it: a file beside the tasks, so that a run that goes on tries no change again. */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { parseTask, taskError } from "../task-error.ts";
import { type NoTaskReason, noTaskReasons } from "./no-task.ts";

const fileName = "tried.json";

/** Other words make other tasks. */
const MadeFrom = z.strictObject({
  source: z.string().describe("the repository or the package"),
  test: z.string(),
  parser: z.string(),
  image: z.string().nullable(),
  tests: z.array(z.string()),
  test_seconds: z.number(),
  memory_mb: z.number(),
});
export type MadeFrom = z.infer<typeof MadeFrom>;

const TriedFix = z.discriminatedUnion("state", [
  z.strictObject({
    key: z.string().describe("the commit, or two versions"),
    title: z.string(),
    state: z.literal("kept"),
    task_id: z.string(),
    fail_to_pass: z.number().int(),
    pass_to_pass: z.number().int(),
    work_runs: z.literal("apart").optional().describe("left out: together with the tests"),
  }),
  z.strictObject({
    key: z.string(),
    title: z.string(),
    state: z.literal("dropped"),
    reason: z.enum(Object.keys(noTaskReasons) as [NoTaskReason, ...NoTaskReason[]]),
    detail: z.string(),
  }),
]);
export type TriedFix = z.infer<typeof TriedFix>;

const TriedFile = z.strictObject({ schema_version: z.literal(1), made_from: MadeFrom, tried: z.array(TriedFix) });

export class TriedFixes {
  readonly #folder: string;
  readonly #from: MadeFrom;
  readonly #tried: Map<string, TriedFix>;

  private constructor(folder: string, from: MadeFrom, tried: TriedFix[]) {
    this.#folder = folder;
    this.#from = from;
    this.#tried = new Map(tried.map((one) => [one.key, one]));
  }

  /** Throws `config_invalid` where the folder holds tasks that were made in another way. */
  static async open(folder: string, from: MadeFrom): Promise<TriedFixes> {
    await mkdir(folder, { recursive: true });
    const file = join(folder, fileName);
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    if (text === null) return new TriedFixes(folder, from, []);
    const known = parseTask(TriedFile, documentOf(text, file), file);
    for (const key of Object.keys(MadeFrom.shape) as (keyof MadeFrom)[]) {
      const [old, asked] = [known.made_from[key], from[key]].map((value) => JSON.stringify(value));
      if (old !== asked)
        throw new AlidadeError("config_invalid", `${file} has ${key} ${old}, and ${asked} is asked for: name another folder with --out`, {
          param: key,
        });
    }
    return new TriedFixes(folder, from, known.tried);
  }

  has(key: string): boolean {
    return this.#tried.has(key);
  }

  get all(): TriedFix[] {
    return [...this.#tried.values()];
  }

  get kept(): number {
    return this.all.filter(({ state }) => state === "kept").length;
  }

  /** The file is another one or the old one, never a part. */
  async add(tried: TriedFix): Promise<void> {
    this.#tried.set(tried.key, tried);
    const file = join(this.#folder, fileName);
    await writeFile(`${file}.new`, `${JSON.stringify({ schema_version: 1, made_from: this.#from, tried: this.all }, null, 2)}\n`);
    await rename(`${file}.new`, file);
  }
}

function documentOf(text: string, file: string): unknown {
  try {
    return readJson(text);
  } catch {
    throw taskError(file, "the file", "is not JSON: remove it to try each change again");
  }
}
