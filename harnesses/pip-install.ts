/** Installs what a requirements.txt names into a folder, and runs nothing of it. */
import { spawn } from "node:child_process";
import { basename } from "node:path";
import { BoundedOutput } from "../base/host/bounded-output.ts";
import { containerPlatform, type PackOptions } from "./pack.ts";

/** pip's last words, for the error. */
const keptOutput = 2_000;

export type PipInstall = {
  /** A file. */
  requirements: string;
  /** The version that runs in the container, such as 3.11. */
  python_version: string;
  target: string;
  platform: string;
  /** The file pins all packages with their hashes: no other one is installed. */
  pinned?: boolean;
};

/** For a container by wheels of its Python, on this machine for the Python that runs here. Throws a plain error with the end of pip's output. */
export async function pipInstall(
  { requirements, python_version, target, platform, pinned = false }: PipInstall,
  { signal, progress }: Omit<PackOptions, "platform">,
): Promise<void> {
  progress?.(`installing ${basename(requirements)} (once)`);
  const cpu = platform.endsWith("arm64") ? "aarch64" : "x86_64";
  const wheels = ["2014", "_2_28"].flatMap((libc) => ["--platform", `manylinux${libc}_${cpu}`]);
  const foreign = ["--only-binary=:all:", "--implementation", "cp", "--python-version", python_version, ...wheels];
  const args = ["-m", "pip", "install", "--target", target, "--requirement", requirements, "--no-input", "--quiet"];
  // What is compiled here by another Python is of no use there, but does no harm. A service of a pinned set starts faster by it.
  args.push(...(pinned ? ["--require-hashes", "--no-deps"] : ["--no-compile"]));
  const child = spawn("python3", [...args, "--disable-pip-version-check", ...(platform === containerPlatform() ? foreign : [])], {
    stdio: ["ignore", "pipe", "pipe"],
    signal,
  });
  const output = new BoundedOutput(keptOutput, "end").follow(child.stdout).follow(child.stderr);
  const code = await new Promise<number | null>((done, reject) => {
    child.once("error", reject);
    child.once("close", done);
  });
  if (code !== 0) throw new Error(`pip ended with ${code}: ${output.toString().trim()}`);
}
