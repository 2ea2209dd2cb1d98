/**
 * An `npm` for tests: writes down that it was called, and makes the packages that package.json asks for out of nothing,
 * or fails as told. It stands first on the PATH of a child process.
 */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

export async function fakeNpm(
  folder: string,
  options: { fail?: string; without?: string; slowMs?: number } = {},
): Promise<{ path: string; log: string }> {
  const path = join(folder, "bin");
  const log = join(folder, "npm.log");
  await mkdir(path, { recursive: true });
  const script = `#!${process.execPath}
const fs = require("node:fs");
const { fail, without, slowMs = 0 } = ${JSON.stringify(options)};
const { optionalDependencies } = JSON.parse(fs.readFileSync("package.json", "utf8"));
fs.appendFileSync(${JSON.stringify(log)}, JSON.stringify({ asked: optionalDependencies, args: process.argv.slice(2) }) + "\\n");
setTimeout(() => {
  if (fail !== undefined) {
    console.error(fail);
    process.exit(1);
  }
  fs.writeFileSync("package-lock.json", "{}");
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (name === without) continue;
    const put = (file, text, mode) => {
      const target = "node_modules/" + name + "/" + file;
      fs.mkdirSync(require("node:path").dirname(target), { recursive: true });
      fs.writeFileSync(target, text, { mode });
    };
    put("package.json", JSON.stringify({ name, version }), 0o600);
    put("bin/node", "", 0o700);
    put("LICENSE", "", 0o600);
    put("dist/bundle/cli.js", "", 0o600);
    put("dist/bundle/cli.d.ts", "", 0o600);
  }
}, slowMs);
`;
  await writeFile(join(path, "npm"), script);
  await chmod(join(path, "npm"), 0o755);
  return { path, log };
}
