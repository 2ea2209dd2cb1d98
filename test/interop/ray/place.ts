/** Where Ray is: the pinned version of requirements.txt, made by install.sh. */
import { join } from "node:path";
import { cachePlace, hashOf, isReady } from "../place.ts";

function rayPlace(): string {
  return cachePlace("ray", hashOf(import.meta.dirname, ["requirements.txt"]));
}

/** The folder of its programs, `python` among them. */
export function rayPrograms(): string {
  return join(rayPlace(), "venv/bin");
}

/** null when it is installed, otherwise why not. */
export async function rayMissing(): Promise<string | null> {
  return isReady(rayPlace()) ? null : "Ray of the pinned version is not installed";
}
