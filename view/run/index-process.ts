/** The process that `open-index-apart.ts` starts: makes the index of the folder that is its argument, and ends. */
import { openIndex } from "../../rollouts/records/index.ts";

await openIndex(process.argv[2] ?? "");
