/** Makes an image with the folders that a service asks for. They are made once for an image, not in each container. */
import { createHash } from "node:crypto";
import type Docker from "dockerode";
import { SharedWork } from "../../../base/host/shared-work.ts";
import { engineWork, perEngine } from "../client.ts";
import { pathStat } from "../path-stat.ts";
import { makeFolder } from "../start-container.ts";
import { hasImage } from "./has-image.ts";
import { unstarted } from "./unstarted.ts";

const known = perEngine(() => new Map<string, string>());
const making = perEngine(() => new Map<string, SharedWork<string>>());

/** `image`: a content id. `owner`: the uid that new folders belong to. Returns `image` itself if it has all of them. */
export async function withFolders(
  docker: Docker,
  image: string,
  folders: readonly string[],
  owner: number,
  signal: AbortSignal,
): Promise<string> {
  if (folders.length === 0) return image;
  const key = JSON.stringify([image, folders, owner]);
  const found = known(docker).get(key);
  if (found !== undefined && (found === image || (await hasImage(docker, found)))) return found;
  const work = making(docker).get(key) ?? new SharedWork<string>();
  making(docker).set(key, work);
  const made = await work.join(signal, () => make(docker, image, folders, owner, key));
  known(docker).set(key, made);
  return made;
}

async function make(docker: Docker, image: string, folders: readonly string[], owner: number, key: string): Promise<string> {
  const tag = createHash("sha256").update(key).digest("hex").slice(0, 16);
  const name = `alidade/owned:${tag}`;
  if (await hasImage(docker, name)) return name;
  await using maker = await unstarted(docker, image);
  let missing = 0;
  for (const path of folders) {
    if ((await pathStat(maker.container, path)) !== null) continue;
    await makeFolder(maker.container, path, owner);
    missing += 1;
  }
  if (missing === 0) return image;
  await engineWork(docker).run(undefined, () => maker.container.commit({ repo: "alidade/owned", tag, pause: false }));
  return name;
}
