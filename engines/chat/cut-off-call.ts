/**
 * A streamed tool parser that meets the end of a turn in the middle of a call's arguments may say `{}` or nothing,
 * depending on where its chunks fell (seen with vLLM 0.32). A harness would then run a call that the model never made.
 */

/** What parsers make up for arguments that they could not read. */
const madeUp = new Set(["", "{}"]);

/** Where a call written as JSON has its arguments. */
const argumentsKey = /"(?:arguments|parameters)"\s*:\s*/;

/**
 * The arguments of the last call of a turn that was cut off: as parsed, or, where the parser completed them, the prefix
 * that was sampled. `sampled` is the turn's text; it is read only in that case. The search starts behind the call's own
 * name, so it never finds another call's arguments. Calls that are not written as JSON keep what the parser gave.
 */
export async function cutOffArguments(
  call: { readonly name: string; readonly arguments: string },
  sampled: () => Promise<string>,
): Promise<string> {
  if (!madeUp.has(call.arguments.trim())) return call.arguments;
  // An answer that is there is not lost for a question about it.
  const text = await sampled().catch(() => "");
  const begun = text.split(nameKey(call.name)).at(-1) as string;
  const key = begun === text ? null : argumentsKey.exec(begun);
  if (!key) return call.arguments;
  const written = begun.slice(key.index + key[0].length);
  return /^\{\s*\}/.test(written) ? call.arguments : written;
}

function nameKey(name: string): RegExp {
  return new RegExp(`"name"\\s*:\\s*${RegExp.escape(JSON.stringify(name))}`);
}
