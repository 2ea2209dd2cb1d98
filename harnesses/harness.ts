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
  /** Names of the dialects that it speaks. The door of its sandboxes answers no other dialect. null: any. */
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
  /** Programs below the pack that it runs by name. They are last on its PATH, so what a sandbox has of the same name is run instead. */
  runs?(platform: PackPlatform): readonly string[];
  /** A file below HOME that it reads as standard input. Absent: the input is empty, because harnesses append it to the prompt. */
  readonly input?: string;
  /** It takes servers of tools (`tools` of the context). Absent: a task that has some is refused for it. */
  readonly tools?: true;
  /** The folder below HOME in which it looks for skills. Absent: a task that has some is refused for it. */
  readonly skills?: string;
  /**
   * It can continue a conversation in a new process (`dialogue` of the context), and sends the earlier messages unchanged.
   * Absent: tasks with a simulated user are refused.
   */
  readonly resumes?: true;
  /** What passes pictures of tools on to the model, for the message of `harness_blind`: a setting, or a limit. Absent: nothing is known. */
  readonly sight?: string;
  /** The context window, in tokens, that it always assumes. */
  readonly fixedWindow?: number;
  /**
   * Kinds of call that it makes when `launch` runs it, beside those of its main agent. A request that claims another kind is
   * not believed: an agent may claim one so that it is not trained on the call.
   */
  readonly makes: readonly RequestClass[];
  /** Basenames of commands that are this harness, for `alidade record -- codex …`. */
  readonly commands: readonly string[];
  /** What its configuration sets (settings.ts). The page on harnesses lists it. Absent: unknown. */
  readonly settings?: readonly Setting[];
  /** Returns how it runs headless on an instruction. */
  launch(context: HarnessContext): HarnessLaunch;
  /** Returns the variables and the files of a temporary HOME that point a person's own command line at the proxy. */
  configure(context: SettingContext): Omit<HarnessLaunch, "argv">;
  /** Reads the outcome where the exit code lies (Pi's JSON mode always exits 0). */
  end(result: { exit_code: number | null; stdout: string; stderr: string }): HarnessEnd;
}
