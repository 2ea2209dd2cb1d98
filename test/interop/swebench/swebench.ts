/** The Python that has the pinned package: its parsers are asked what they make of our recorded logs. */
import { join } from "node:path";
import { cachePlace, hashOf, isReady } from "../place.ts";

/** Holds `venv/`; ready when it holds the file `ready`. */
function swebenchPlace(): string {
  return cachePlace("swebench", hashOf(import.meta.dirname, ["requirements.txt"]));
}

export function swebenchPython(): string {
  return join(swebenchPlace(), "venv/bin/python");
}

/** null when it is installed, otherwise why not. */
export async function swebenchMissing(): Promise<string | null> {
  return isReady(swebenchPlace()) ? null : "swebench of the pinned version is not installed";
}
