/**
 * Alidade's images of a desktop: a screen without a monitor, a window manager, and a browser or the programs that a task names.
 * Its programs of ours are mounted.
 */
import type Docker from "dockerode";
import type { PrepareOptions } from "../../../sandbox.ts";
import { ensureMade, type MadeImage, madeName } from "./made-image.ts";

/** Nothing here draws by a graphics card, so what would imitate one (a compiler of 100 MB) is left out. */
const left_out = ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/lib/*/libLLVM*", "/usr/lib/*/dri/*"];
const withBrowser = ["bash", "ca-certificates", "chromium", "fonts-dejavu-core", "libstdc++6", "openbox", "procps", "xvfb"];
const withPrograms = ["bash", "fonts-dejavu-core", "libstdc++6", "openbox", "procps", "xvfb"];

export const desktopImage = madeName("desktop", { packages: withBrowser, left_out });

const browserDesktop: MadeImage = {
  packages: withBrowser,
  left_out,
  name: desktopImage,
  title: "desktop image",
  cure: "name an image of your own for the service of environment.display",
};

/** Two to three minutes once per engine. `packages`: [] for the one with a browser. */
export function ensureDesktopImage(packages: readonly string[], options: PrepareOptions, engine?: Docker): Promise<string> {
  return ensureMade(packages.length === 0 ? browserDesktop : programDesktop(packages), options, engine);
}

export function desktopImageOf(packages: readonly string[]): string {
  return packages.length === 0 ? desktopImage : programDesktop(packages).name;
}

function programDesktop(packages: readonly string[]): MadeImage {
  const content = { packages: [...withPrograms, ...packages], left_out };
  const title = `desktop image with ${packages.join(", ")}`;
  return { ...content, name: madeName("desktop", content), title, cure: "correct environment.display.packages" };
}
