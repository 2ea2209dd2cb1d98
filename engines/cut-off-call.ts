/**
 * A streamed tool parser that meets the end of a turn in the middle of a call's arguments may say `{}` or nothing,
 * depending on where its chunks fell (seen with vLLM 0.32). A harness would then run a call that the model never made.
 */

/** What parsers make up for arguments that they could not read. */
const madeUp = new Set(["", "{}"]);

/** Where a call written as JSON has its arguments. */
const argumentsKey = /"(?:arguments|parameters)"\s*:\s*/g;

/**
 * The arguments of the last call of a turn that was cut off: as the parser said, or where it made them up, the beginning
 * that was sampled. `sampled` is the turn's text, asked for only in that case. Calls that are not written as JSON keep
 * what the parser said.
 */
export async function cutOffArguments(parsed: string, sampled: () => Promise<string>): Promise<string> {
  if (!madeUp.has(parsed.trim())) return parsed;
  // An answer that is there is not lost for a question about it.
  const text = await sampled().catch(() => "");
  const key = [...text.matchAll(argumentsKey)].at(-1);
  if (!key) return parsed;
  const written = text.slice(key.index + key[0].length);
  return /^\{\s*\}/.test(written) ? parsed : written;
}
