/** What the service of a display finds read-only inside: path -> folder of this machine. */
import type { Display } from "../../base/schema/environment/display.ts";
import { doorInside } from "../door/door-kind.ts";
import { doorPack } from "../door/door-pack.ts";
import { desktopInside, desktopPack, policyFolder, policyInside } from "./desktop-pack.ts";
import { playwrightInside, playwrightPack } from "./playwright-server.ts";

/** `arch`: the CPU of its image in Node's words. */
export async function desktopMounts(display: Display, arch: string): Promise<Record<string, string>> {
  return {
    [doorInside]: await doorPack(arch),
    [desktopInside]: await desktopPack(),
    [policyInside]: await policyFolder(display),
    ...(display.tools === "playwright" && { [playwrightInside]: await playwrightPack() }),
  };
}
