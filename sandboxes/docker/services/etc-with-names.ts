/** Copies files of /etc and adds the names of services. The names lead to loopback of their network namespace. */
import { cp, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { cached } from "../../../base/host/cache-folder.ts";
import { reachableServices, type Services } from "../../../base/schema/environment/services.ts";
import { hashOf } from "../../../base/schema/ids.ts";

export function namesOf(services: Services = {}): string[] {
  return Object.entries(services).flatMap(([name, { aliases }]) => [name, ...aliases]);
}

/** `etc`: our copy of the image's /etc. Returned itself if `names` is empty. */
export async function etcWithNames(etc: string, names: readonly string[]): Promise<string> {
  if (names.length === 0) return etc;
  return cached(`images/${basename(etc)}-${hashOf(names).slice(0, 16)}`, async (folder) => {
    await cp(etc, folder, { recursive: true });
    const lines = names.map((name) => `127.0.0.1\t${name}\n`);
    await writeFile(join(folder, "hosts"), (await readFile(join(etc, "hosts"), "utf8")) + lines.join(""), { mode: 0o644 });
  });
}

/** Returns the names that a sandbox knows: `main` for itself, and each service that it can reach. */
export function namesInSandbox(services: Services = {}): string[] {
  const names = namesOf(reachableServices(services));
  return names.length === 0 ? [] : ["main", ...names];
}
