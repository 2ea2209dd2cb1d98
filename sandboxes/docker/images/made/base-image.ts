/** Alidade's own base image, for tasks that name none: a small Debian with what agents and graders reach for. */
import type Docker from "dockerode";
import type { PrepareOptions } from "../../../sandbox.ts";
import { ensureMade, madeName } from "./made-image.ts";

const content = {
  /** libstdc++6 is what the Node binaries of the packs need beside glibc. */
  packages: [
    "bash",
    "ca-certificates",
    "coreutils",
    "diffutils",
    "findutils",
    "git",
    "grep",
    "libstdc++6",
    "patch",
    "procps",
    "python3",
    "ripgrep",
    "sed",
  ],
  left_out: ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*"],
};

export const baseImage = madeName("base", content);

const made = { ...content, name: baseImage, title: "base image", cure: "name an image of your own in the task (environment.image)" };

/** 25 to 60 s once per engine, however many ask. `engine`: default, that of this machine. */
export function ensureBaseImage(options: PrepareOptions, engine?: Docker): Promise<string> {
  return ensureMade(made, options, engine);
}
