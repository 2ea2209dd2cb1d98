/** The sandbox's files of /etc where there are services: their names, and `main` for the sandbox itself, lead to its own loopback. */
import { cp, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { cached } from "../../base/host/cache-folder.ts";
import type { Services } from "../../base/schema/environment/services.ts";
import { hashOf } from "../../base/schema/ids.ts";

export function namesOf(services: Services = {}): string[] {
  return Object.entries(services).flatMap(([name, { aliases }]) => [name, ...aliases]);
}

/** `etc`: the folder that is kept of the image. Without services the very same. */
export async function etcWithNames(etc: string, services: Services | undefined): Promise<string> {
  if (namesOf(services).length === 0) return etc;
  const names = ["main", ...namesOf(services)];
  return cached(`images/${basename(etc)}-${hashOf(names).slice(0, 16)}`, async (folder) => {
    await cp(etc, folder, { recursive: true });
    const lines = names.map((name) => `127.0.0.1\t${name}\n`);
    await writeFile(join(folder, "hosts"), (await readFile(join(etc, "hosts"), "utf8")) + lines.join(""), { mode: 0o644 });
  });
}
