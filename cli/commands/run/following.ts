/** `following.json` in the folder of a run over a service: how far the run has followed its set. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AlidadeError } from "../../../base/errors.ts";
import { tryJson } from "../../../base/schema/read-json.ts";
import { replacePrivateFile } from "../../../proxy/store/index.ts";

const Following = z.strictObject({
  set_id: z.string(),
  cursor: z.string().nullable().describe("behind what is in the folder; null: nothing has come"),
  unbegun: z.number().int().describe("rollouts that were cancelled before their first attempt: they have no record"),
  left_out: z.array(z.string()).describe("a sentence for each task that was not sent"),
});
export type Following = z.infer<typeof Following>;

/** null: the run has no set yet. Throws `config_invalid` for a damaged one. */
export async function readFollowing(path: string): Promise<Following | null> {
  const file = join(path, "following.json");
  const text = await readFile(file, "utf8").catch(() => null);
  if (text === null) return null;
  const result = Following.safeParse(tryJson(text));
  if (result.success) return result.data;
  throw new AlidadeError("config_invalid", `${file} is damaged: without it this run begins at its first result again; remove it for that`, {
    param: "resume",
  });
}

/** A process that dies meanwhile leaves the one or the other. */
export function keepFollowing(path: string, following: Following): Promise<void> {
  return replacePrivateFile(join(path, "following.json"), `${JSON.stringify(following)}\n`);
}
