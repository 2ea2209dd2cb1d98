/** Our own version, as package.json says it: beside this file in a checkout, a folder up in the published package. */
import { readFileSync } from "node:fs";
import { z } from "zod";

const Package = z.looseObject({ name: z.literal("alidade"), version: z.string() });

export const version: string = readVersion();

function readVersion(): string {
  for (const place of ["./package.json", "../package.json"]) {
    try {
      return Package.parse(JSON.parse(readFileSync(new URL(place, import.meta.url), "utf8"))).version;
    } catch {
      // Not there: the other layout.
    }
  }
  return "unknown";
}
