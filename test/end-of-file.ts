/**
 * Loaded before each test file by run.ts. A file whose tests are done but whose process lives on has left a server, a
 * child or a timer behind: that is a bug of a lifetime, so it fails with the names of what is open, and no run hangs.
 */
import { after } from "node:test";

/** Enough for sockets that are closing and children that got their signal. */
const PATIENCE_MS = 15_000;

after(() => {
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().filter((name) => name !== "PipeWrap" && name !== "TTYWrap");
    console.error(`All tests of this file are done, but ${PATIENCE_MS / 1000} s later these still hold the process: ${open.join(", ")}`);
    process.exit(1);
  }, PATIENCE_MS).unref();
});
