/** Installs pinned npm packages into a folder, for a platform that need not be this machine's, and runs none of their scripts. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { basename, delimiter, dirname, join } from "node:path";
import { AlidadeError } from "../base/errors.ts";
import { BoundedOutput } from "../base/host/bounded-output.ts";
import { readJson } from "../base/schema/read-json.ts";
import type { PackPlatform } from "./harness.ts";

/** npm's own words that are kept for the error: its last lines say what went wrong. */
const keptOutput = 2000;

export type NpmInstall = {
  folder: string;
  packages: Readonly<Record<string, string>>;
  platform: PackPlatform;
  signal: AbortSignal;
};

/** Throws a plain error with the end of npm's output, and `cancelled` when the signal fired. */
export async function npmInstall({ folder, packages, platform, signal }: NpmInstall): Promise<void> {
  // As optional dependencies: for others npm refuses a platform that is not the machine's. The caller checks what came.
  await writeFile(join(folder, "package.json"), `${JSON.stringify({ private: true, optionalDependencies: packages }, null, 2)}\n`);
  await checkInstalled(folder, packages, await installIn({ folder, platform, signal }));
}

/** The same for a package.json of the user's, with the lock beside it where there is one. */
export async function npmInstallFrom({ manifest, ...place }: Omit<NpmInstall, "packages"> & { manifest: string }): Promise<void> {
  await copyFile(manifest, join(place.folder, "package.json"));
  await copyFile(join(dirname(manifest), "package-lock.json"), join(place.folder, "package-lock.json")).catch(() => undefined);
  await installIn(place);
}

/** The end of npm's output. */
async function installIn({ folder, platform, signal }: Omit<NpmInstall, "packages">): Promise<string> {
  const [os = "", cpu = ""] = platform.split("-");
  const { code, output } = await run(
    [
      "install",
      "--omit=dev",
      // Nothing that a package brings runs on the host; what its scripts would do, program() and pack.ts do.
      "--ignore-scripts",
      `--os=${os}`,
      `--cpu=${cpu}`,
      ...(os === "linux" ? ["--libc=glibc"] : []),
      `--prefix=${folder}`,
      "--prefer-offline",
      "--no-audit",
      "--no-fund",
      "--no-progress",
      "--update-notifier=false",
      "--loglevel=warn",
    ],
    folder,
    signal,
  );
  if (signal.aborted) throw new AlidadeError("cancelled", "The installation was cancelled.", { cause: signal.reason });
  if (code !== 0) {
    throw new Error(`npm ended with ${code === null ? "a signal" : `exit code ${code}`}:\n${output.trim()}`);
  }
  return output;
}

/** npm passes over an optional dependency that it cannot get, so each is looked for. */
async function checkInstalled(folder: string, packages: Readonly<Record<string, string>>, output: string): Promise<void> {
  for (const [name, version] of Object.entries(packages)) {
    const found = await installedVersion(join(folder, "node_modules", name, "package.json"));
    if (found === version) continue;
    const what = found === null ? "did not install it" : `installed ${found}`;
    throw new Error(`npm was asked for ${name}@${version} and ${what}:\n${output.trim()}`);
  }
}

async function installedVersion(path: string): Promise<string | null> {
  try {
    return (readJson(await readFile(path, "utf8")) as { version: string }).version;
  } catch {
    return null;
  }
}

function run(args: string[], cwd: string, signal: AbortSignal): Promise<{ code: number | null; output: string }> {
  const [command, ...before] = npmCommand();
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...before, ...args], { cwd, env: environment(), stdio: ["ignore", "pipe", "pipe"], signal });
    const output = new BoundedOutput(keptOutput, "end").follow(child.stdout).follow(child.stderr);
    child.on("error", (error) => {
      if (signal.aborted) return;
      reject(new Error(`npm could not be started (${error.message}); install Node with npm`, { cause: error }));
    });
    child.on("close", (code) => resolve({ code, output: output.toString() }));
  });
}

/** Under `npm run` the very npm that runs us, else the one on the PATH. */
function npmCommand(): [string, ...string[]] {
  const path = process.env.npm_execpath;
  if (path !== undefined && basename(path) === "npm-cli.js") return [process.execPath, path];
  const places = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "npm"));
  return [places.find((place) => existsSync(place)) ?? "npm"];
}

/**
 * The user's own settings stay (registry, proxy, certificates); those of the `npm run` around us speak of its folder. npm
 * finds the Node that runs us first: the one on the PATH may be too old for the packages, and npm then passes over them.
 */
function environment(): NodeJS.ProcessEnv {
  const { npm_config_local_prefix: _, npm_config_prefix: __, npm_config_global: ___, ...env } = process.env;
  return { ...env, PATH: [dirname(process.execPath), env.PATH].join(delimiter) };
}
