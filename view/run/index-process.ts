/** The process that `open-index-apart.ts` starts: makes the index of the folder that is its argument, and ends. */
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { cacheRoot } from "../../base/host/cache-folder.ts";

// As bin/alidade.js does, before the modules that read records are loaded.
enableCompileCache(join(cacheRoot(), "compiled"));
const { openIndex } = await import("../../rollouts/records/index.ts");
await openIndex(process.argv[2] ?? "");
