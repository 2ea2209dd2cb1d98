/** Alidade's profile of system calls, as an engine takes it. */
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type Docker from "dockerode";
import { cached } from "../../../base/host/cache-folder.ts";
import { engineTraits } from "../engine-traits.ts";
import { folderAt } from "../hosts/mounts.ts";
import { seccompProfile } from "./seccomp-profile.ts";

const fileName = "seccomp.json";

/** What stands behind `seccomp=` in a request; null: the engine filters no system calls. `image`: one that it has. */
export async function profileFor(docker: Docker, image: string, rules: { watches: boolean }, signal: AbortSignal): Promise<string | null> {
  const { profiles } = await engineTraits(docker);
  if (profiles === null) return null;
  const profile = seccompProfile(rules);
  if (profiles === "text") return profile;
  const hash = createHash("sha256").update(profile).digest("hex").slice(0, 16);
  const folder = await cached(`seccomp/${hash}`, async (empty) => {
    await mkdir(empty, { recursive: true });
    await writeFile(join(empty, fileName), profile, { mode: 0o644 });
  });
  return join(await folderAt(docker, image, { folder, file: fileName }, signal), fileName);
}
