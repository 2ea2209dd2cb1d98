import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { GoldScript } from "../../base/schema/task.ts";
import { folderBelow } from "../host-path.ts";
import { expandEnv } from "./expand-env.ts";
import type { FolderOrder } from "./folder-order.ts";

/** Harbor's oracle: `solve.sh` of the first of these folders that has one, else there is none. */
export async function goldOf({ folder, file, config, host }: FolderOrder, places: readonly string[]): Promise<GoldScript | undefined> {
  const found = await Promise.all(places.map((place) => lstat(join(folder, place, "solve.sh")).catch(() => null)));
  const place = places[found.findIndex((script) => script?.isFile() === true)];
  if (place === undefined) return undefined;
  return {
    files: await folderBelow(folder, place, file, place),
    at: "/solution",
    command: ["sh", "-c", "chmod +x /solution/solve.sh; /solution/solve.sh"],
    env: { DEBIAN_FRONTEND: "noninteractive", ...expandEnv(config.solution.env, host, file, "solution.env") },
  };
}
