/** The command line as a process. */

import { toStoreError } from "../proxy/store/index.ts";
import { fail } from "./commands/command-line.ts";
import { main } from "./commands/index.ts";

// A reader that has seen enough (`alidade export | head`) is no failure; a full disk is one, in a sentence.
process.stdout.on("error", (error: NodeJS.ErrnoException) =>
  process.exit(error.code === "EPIPE" ? 0 : fail(toStoreError("standard output", error), false)),
);
// A closed output of progress (`alidade run 2>&1 | head`, a closed terminal) must not end a run.
process.stderr.on("error", () => undefined);

await main(process.argv.slice(2));
