/** The file of `--trainer-logprobs`. */
import { access } from "node:fs/promises";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readJsonLines } from "../../proxy/store/index.ts";
import { Drift, GivenLogprobs, TrainerLogprobs } from "../../reconstruct/index.ts";

/** Throws `config_invalid` where there is no such file or it is too long, and `store_error` naming a line that is none. */
export async function readDrift(path: string, tolerance: number): Promise<Drift> {
  const drift = new Drift(tolerance, invalid);
  await readInto(drift, path);
  return drift;
}

/** The same file, for pages that show single tokens. */
export async function readTrainerLogprobs(path: string): Promise<GivenLogprobs> {
  const given = new GivenLogprobs(invalid);
  await readInto(given, path);
  return given;
}

async function readInto(to: Pick<GivenLogprobs, "tell">, path: string): Promise<void> {
  await access(path).catch((error: unknown) => {
    throw invalid(`cannot read it: ${messageOf(error)}`);
  });
  for await (const one of readJsonLines(path, (value) => TrainerLogprobs.parse(value))) to.tell(one);
}

function invalid(message: string): AlidadeError {
  return new AlidadeError("config_invalid", `--trainer-logprobs: ${message}`, { param: "trainer_logprobs" });
}
