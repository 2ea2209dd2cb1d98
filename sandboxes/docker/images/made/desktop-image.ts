/** Alidade's image of a desktop: a screen without a monitor, a window manager and a browser. Its programs of ours are mounted. */
import type Docker from "dockerode";
import type { PrepareOptions } from "../../../sandbox.ts";
import { ensureMade, madeName } from "./made-image.ts";

const content = {
  packages: ["bash", "ca-certificates", "chromium", "fonts-dejavu-core", "libstdc++6", "openbox", "procps", "xvfb"],
  /** Nothing here draws by a graphics card, so what would imitate one (a compiler of 100 MB) is left out. */
  left_out: ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/lib/*/libLLVM*", "/usr/lib/*/dri/*"],
};

export const desktopImage = madeName("desktop", content);

const made = {
  ...content,
  name: desktopImage,
  title: "desktop image",
  cure: "name an image of your own for the service of environment.display",
};

/** Two to three minutes once per engine. */
export function ensureDesktopImage(options: PrepareOptions, engine?: Docker): Promise<string> {
  return ensureMade(made, options, engine);
}
