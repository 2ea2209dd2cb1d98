/** What the engine says of one path of a container, which need not run. */
import type { IncomingMessage } from "node:http";
import type Docker from "dockerode";
import { readJson } from "../../base/schema/read-json.ts";
import { statusOf } from "./client.ts";

export type PathStat = {
  isFolder: boolean;
  /** Permission bits, set-id and sticky bits too. */
  mode: number;
  mtime: Date;
};

/** Go's bits of a file mode: the permissions are the lowest nine, the others stand at the top. */
const goFolder = 2 ** 31;
const goBits = [
  [2 ** 23, 0o4000],
  [2 ** 22, 0o2000],
  [2 ** 20, 0o1000],
] as const;

/** A link is described itself, and not its target. null: nothing is there. */
export async function pathStat(container: Docker.Container, path: string): Promise<PathStat | null> {
  const answer = await container.infoArchive({ path }).catch((error: unknown) => {
    if (statusOf(error) === 404) return null;
    throw error;
  });
  if (answer === null) return null;
  const response = answer as unknown as IncomingMessage;
  response.resume(); // has no body, and holds its connection until that is read
  const header = String(response.headers["x-docker-container-path-stat"] ?? "");
  const { mode = 0, mtime } = readJson(Buffer.from(header, "base64").toString("utf8") || "{}") as { mode?: number; mtime?: string };
  const has = (bit: number) => Math.floor(mode / bit) % 2 === 1;
  const top = goBits.reduce((sum, [go, bit]) => sum + (has(go) ? bit : 0), 0);
  return { isFolder: has(goFolder), mode: (mode % 0o1000) + top, mtime: new Date(mtime ?? 0) };
}
