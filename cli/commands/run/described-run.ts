/** What a run was asked for, from its run.json. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AlidadeError } from "../../../base/errors.ts";
import { tryJson } from "../../../base/schema/read-json.ts";

/** Where the service of a run is, and what its set was asked for. */
const AskedService = z.strictObject({
  url: z.string().nullable(),
  file: z.string().nullable().describe("the service.json, where no url was given"),
  ca: z.string().nullable(),
  token_env: z.string(),
  set: z.record(z.string(), z.unknown()),
});
export type AskedService = z.infer<typeof AskedService>;

const Described = z.looseObject({
  run_id: z.string(),
  config: z.looseObject({ engine: z.looseObject({}) }),
  service: AskedService.optional(),
  made_by: z.string().optional().describe("the verb, where its rollouts are no new ones of its tasks"),
});

/** Throws `config_invalid` naming `param`. */
export async function describedRun(path: string, param: string): Promise<z.infer<typeof Described>> {
  const text = await readFile(join(path, "run.json"), "utf8").catch((error: unknown) => {
    throw new AlidadeError("config_invalid", `${path} is no folder of a run: it has no run.json`, { cause: error, param });
  });
  const described = Described.safeParse(tryJson(text));
  if (!described.success)
    throw new AlidadeError("config_invalid", `${join(path, "run.json")} is damaged: this run cannot go on`, { param });
  return described.data;
}
