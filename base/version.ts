/** Our own version, as package.json says it: a folder above this one in a checkout, two in the published package. */
import { readFileSync } from "node:fs";

export const version: string = readVersion();

function readVersion(): string {
  for (const place of ["../package.json", "../../package.json"]) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(place, import.meta.url), "utf8")) as Record<string, unknown>;
      if (name === "alidade" && typeof version === "string") return version;
    } catch {
      // Not there: the other layout.
    }
  }
  return "unknown";
}
