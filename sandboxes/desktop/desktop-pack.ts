/** What is mounted into the service that shows a desktop: our programs, and the browser's policy. */
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cached } from "../../base/host/cache-folder.ts";
import type { Display } from "../../base/schema/environment/display.ts";
import { browserPolicy } from "./browser-policy.ts";

export const desktopInside = "/opt/alidade/desktop";
export const policyInside = "/etc/chromium/policies/managed";

/** `.ts` in a source tree, `.js` where it was published. */
const extension = extname(fileURLToPath(import.meta.url));
const root = new URL("../../", import.meta.url);
const programs = [
  "computer-actions",
  "computer-server",
  "frame-server",
  "frames",
  "keyboard",
  "openbox-config",
  "places",
  "png",
  "programs-at-work",
  "screen",
  "x-client",
];
/** From the root of our sources. The pack keeps their places, so that they find each other. */
const parts = [
  ...programs.map((name) => `sandboxes/desktop/inside/${name}${extension}`),
  ...["read-json", "exact-json"].map((name) => `base/schema/${name}${extension}`),
];

export const screenProgram = `${desktopInside}/sandboxes/desktop/inside/screen${extension}`;
export const computerProgram = `${desktopInside}/sandboxes/desktop/inside/computer-server${extension}`;
export const frameProgram = `${desktopInside}/sandboxes/desktop/inside/frame-server${extension}`;

/** A folder of this machine with the programs. */
export async function desktopPack(): Promise<string> {
  const sources = await Promise.all(parts.map((path) => readFile(new URL(path, root))));
  const hash = createHash("sha256");
  for (const source of sources) hash.update(source);
  return cached(`desktop/${hash.digest("hex").slice(0, 16)}`, async (folder) => {
    await writeFile(join(folder, "package.json"), '{"type":"module"}\n', { mode: 0o644 });
    for (const [index, path] of parts.entries()) {
      await mkdir(dirname(join(folder, path)), { recursive: true, mode: 0o755 });
      await writeFile(join(folder, path), sources[index] as Buffer, { mode: 0o644 });
    }
  });
}

/** A folder of this machine with the policy. It is mounted read-only, so the browser cannot change it. */
export async function policyFolder(display: Display): Promise<string> {
  const policy = browserPolicy(display);
  const hash = createHash("sha256").update(policy).digest("hex").slice(0, 16);
  return cached(`browser-policy/${hash}`, (folder) => writeFile(join(folder, "alidade.json"), policy, { mode: 0o644 }));
}
