/**
 * An agent harness: an unmodified CLI that we install, configure and start, and nothing else. A new one is a file here
 * and a line in index.ts.
 */

import type { RequestClass } from "../base/schema/session-spec.ts";
import type { HarnessContext } from "./harness-context.ts";
import type { Setting, SettingContext } from "./settings.ts";

/** The platform of a pack: Docker needs `linux-…` on any host, the process sandbox the host's own. */
export const packPlatforms = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"] as const;
export type PackPlatform = (typeof packPlatforms)[number];

export type HarnessLaunch = {
  argv: string[];
  env: Record<string, string>;
  /** Configuration below HOME: relative path -> content. */
  files: Record<string, string>;
};

/** What the harness says of its own end, beside the exit code. */
export type HarnessEnd = { failed: boolean; message: string | null };

/** What the pack of one's own command is built of (own-pack.ts). Paths are relative to `folder`. */
export type OwnFiles = {
  folder: string;
  files: readonly string[];
  /** A requirements.txt. */
  python: string | null;
  /** The Python of the sandbox's image, such as 3.11. */
  python_version: string;
  /** A package.json. */
  node: string | null;
};

export interface Harness {
  readonly name: string;
  readonly title: string;
  /** Names of the dialects that it speaks here: its rollouts' sandboxes are answered in no other. null: any. */
  readonly dialects: readonly string[] | null;
  /** npm packages of its pack, pinned. Empty: nothing to install (one's own command). */
  readonly packages: Readonly<Record<string, string>>;
  readonly version: string | null;
  /** Its program below the pack; a `.js` one runs on the pack's Node. Absent where there is nothing to install. */
  program?(platform: PackPlatform): string;
  /** Its pack is built of these files, and not of `packages`. */
  readonly own?: OwnFiles;
  /** Folders below the pack that no headless run needs: they are left out of it. */
  unneeded?(platform: PackPlatform): readonly string[];
  /** The file below HOME that its pack hands to it as standard input. Absent: an empty one, for harnesses append it to the prompt. */
  readonly input?: string;
  /** The context window, in tokens, that it always assumes. */
  readonly fixedWindow?: number;
  /**
   * Kinds of call beside its main agent's that it makes when `launch` runs it. Others that a request claims are not
   * believed: they may be the words of an agent that would not be trained on them.
   */
  readonly makes: readonly RequestClass[];
  /** Basenames of commands that are this harness, for `alidade record -- codex …`. */
  readonly commands: readonly string[];
  /** What its configuration sets, for the page on harnesses; ours are configured by it (settings.ts). Absent: it is not told. */
  readonly settings?: readonly Setting[];
  /** How it is run headless on an instruction. */
  launch(context: HarnessContext): HarnessLaunch;
  /** How a person's own command line of it is pointed at us: variables and files for a temporary HOME. */
  configure(context: SettingContext): Omit<HarnessLaunch, "argv">;
  /** Reads the outcome where the exit code lies (Pi's JSON mode always exits 0). */
  end(result: { exit_code: number | null; stdout: string; stderr: string }): HarnessEnd;
}
