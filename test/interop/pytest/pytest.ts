/** pytest as a folder that a container mounts: its wheels are for any Python of version 3.10 or newer. */
import { join } from "node:path";
import { cachePlace, hashOf, isReady } from "../place.ts";

/** Holds `venv/`; ready when it holds the file `ready`. */
function pytestPlace(): string {
  return cachePlace("pytest", hashOf(import.meta.dirname, ["requirements.txt"]));
}

/** The folder of its modules. */
export function pytestModules(): string {
  return join(pytestPlace(), "venv/lib/python3.11/site-packages");
}

/** null when it is installed, otherwise why not. */
export async function pytestMissing(): Promise<string | null> {
  return isReady(pytestPlace()) ? null : "pytest of the pinned version is not installed";
}
