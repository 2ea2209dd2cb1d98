/** Started as a process of its own by the pack tests: installs Pi's pack, prints the pack or the error as one line of JSON. */
import { asAlidadeError } from "../../../base/errors.ts";
import { ensurePack } from "../../../harnesses/pack.ts";
import { harnessNamed } from "../../../harnesses/registry.ts";

const abort = new AbortController();
process.on("SIGTERM", () => abort.abort());
try {
  const pack = await ensurePack(harnessNamed("pi"), {
    signal: abort.signal,
    platform: "linux-x64",
    progress: (line) => console.error(line),
  });
  console.log(JSON.stringify(pack));
} catch (error) {
  console.log(JSON.stringify(asAlidadeError(error, "internal")));
}
