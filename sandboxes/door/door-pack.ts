/**
 * What is mounted into every container: the program that keeps it, and for its door a Node for Linux and the forwarder. With Node the forwarder runs
 * the same multiplexer as the host, and nothing is asked of the image but glibc and libstdc++ (every image that has apt
 * or a compiler has both).
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, copyFile, link, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { AlidadeError } from "../../base/errors.ts";
import { cached } from "../../base/host/cache-folder.ts";
import { keeperProgram } from "./keeper-program.ts";

/** `.ts` in a source tree, `.js` where it was published. */
const extension = extname(fileURLToPath(import.meta.url));
const parts = ["forwarder", "multiplexer", "join-connections"].map((name) => `${name}${extension}`);
export const forwarderFile = `forwarder${extension}`;
export const keeperFile = "keeper";

/** A host folder with `keeper`, `node` and the forwarder. `arch` is the engine's CPU in Node's words. Throws `sandbox_unavailable`. */
export async function doorPack(arch: string = process.arch): Promise<string> {
  const sources = await Promise.all(parts.map((name) => readFile(new URL(name, import.meta.url))));
  const keeper = keeperProgram(arch);
  if (keeper === null) throw new AlidadeError("sandbox_unavailable", `The engine's CPU is ${arch}: use an engine on x64 or arm64.`);
  const hash = createHash("sha256").update(`${process.version} ${arch} ${process.execPath}`).update(keeper);
  for (const source of sources) hash.update(source);
  return cached(`door/${hash.digest("hex").slice(0, 16)}`, async (folder) => {
    for (const [index, name] of parts.entries()) await writeFile(join(folder, name), sources[index] as Buffer, { mode: 0o644 });
    await writeFile(join(folder, "package.json"), '{"type":"module"}\n', { mode: 0o644 });
    await writeFile(join(folder, keeperFile), keeper);
    await chmod(join(folder, keeperFile), 0o755);
    await placeNode(folder, arch);
  });
}

/** Below this a Node is only the front of a shared library (as distributions build it), which a container lacks. */
const wholeNodeBytes = 20_000_000;

/** Our own Node where it is a whole one for Linux, else npm's of the same version. */
async function placeNode(folder: string, arch: string): Promise<void> {
  const place = join(folder, "node");
  const { size } = await stat(process.execPath);
  if (process.platform === "linux" && arch === process.arch && size >= wholeNodeBytes) {
    // A link costs nothing; across file systems there is none.
    await link(process.execPath, place).catch(() => copyFile(process.execPath, place));
    return;
  }
  const name = `node-linux-${arch}`;
  const install = join(folder, "install");
  await mkdir(install);
  const version = `${name}@${process.version.slice(1)}`;
  const flags = ["--prefix", install, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--force"];
  const child = spawn("npm", ["install", ...flags, "--os=linux", `--cpu=${arch}`, version], { stdio: ["ignore", "ignore", "pipe"] });
  const problems = text(child.stderr);
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
  if (code !== 0) throw new Error(`npm could not fetch ${version} for the sandbox's door: ${(await problems).trim().slice(-500)}`);
  await copyFile(join(install, "node_modules", name, "bin", "node"), place);
  await chmod(place, 0o755);
  await rm(install, { recursive: true });
}
