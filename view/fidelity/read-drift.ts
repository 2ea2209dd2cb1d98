/** The file of `--trainer-logprobs`. */
import { access } from "node:fs/promises";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readJsonLines } from "../../proxy/store/index.ts";
import { Drift, TrainerLogprobs } from "../../reconstruct/index.ts";

/** Throws `config_invalid` where there is no such file or it is too long, and `store_error` naming a line that is none. */
export async function readDrift(path: string, tolerance: number): Promise<Drift> {
  await access(path).catch((error: unknown) => {
    throw invalid(`cannot read it: ${messageOf(error)}`);
  });
  const drift = new Drift(tolerance, invalid);
  for await (const one of readJsonLines(path, (value) => TrainerLogprobs.parse(value))) drift.tell(one);
  return drift;
}

function invalid(message: string): AlidadeError {
  return new AlidadeError("config_invalid", `--trainer-logprobs: ${message}`, { param: "trainer_logprobs" });
}
