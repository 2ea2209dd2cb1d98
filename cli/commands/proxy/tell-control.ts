/** Where a trainer reaches a run: `<run>/control.json` while it runs. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { privateFileMode } from "../../../proxy/store/index.ts";

const nothing: AsyncDisposable = { [Symbol.asyncDispose]: async () => undefined };

/** `token`: null where the operator knows it. For this user alone. */
export async function tellControl(
  run: string,
  url: string | null,
  token: string | null,
  note: (text: string) => void,
): Promise<AsyncDisposable> {
  const file = join(run, "control.json");
  // A process that was killed leaves its own, with an address that is dead.
  await rm(file, { force: true });
  if (url === null) return nothing;
  await writeFile(file, `${JSON.stringify({ url, token })}\n`, { mode: privateFileMode });
  note(`control listener on ${url}; url and token are in ${file}`);
  return { [Symbol.asyncDispose]: () => rm(file, { force: true }) };
}
