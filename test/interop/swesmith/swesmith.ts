/** The Python that has the pinned package: its parsers are asked what they make of our recorded logs. */
import { join } from "node:path";
import { cachePlace, hashOf, isReady } from "../place.ts";

/** Holds `venv/`; ready when it holds the file `ready`. */
function swesmithPlace(): string {
  return cachePlace("swesmith", hashOf(import.meta.dirname, ["requirements.txt"]));
}

export function swesmithPython(): string {
  return join(swesmithPlace(), "venv/bin/python");
}

/** null when it is installed, otherwise why not. */
export async function swesmithMissing(): Promise<string | null> {
  return isReady(swesmithPlace()) ? null : "swesmith of the pinned version is not installed";
}
