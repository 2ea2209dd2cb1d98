/**
 * The data of a Postgres of one's own: a folder with one database and one role, which is no superuser, because each node has its
 * password. Each step is done whole or not at all, so a start that was killed is begun again.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../../../../base/errors.ts";
import { giveTo, isThere, type PostgresPrograms } from "./programs.ts";
import { runProgram, untilFree } from "./server-process.ts";

export const role = "alidade";
export const database = "rollouts";

export type PostgresCluster = { data: string; passwordFile: string; programs: PostgresPrograms };

/** All that a folder of ours may hold. */
const ours = /^(?:data|pgpass|lock(?:\.removing)?|(?:programs|draft)-[\w.-]+)$/;

/** Before anything is written. Throws `config_invalid` where the folder has what is not ours. */
export async function assertOwnFolder(folder: string): Promise<void> {
  const refuse = (why: string) => new AlidadeError("config_invalid", `--folder is ${folder}: ${why}`, { param: "folder" });
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw refuse(`it cannot be read (${error.message})`);
  });
  const strange = names.find((name) => !ours.test(name));
  if (strange !== undefined)
    throw refuse(`it holds ${strange.slice(0, 80)}, which \`alidade postgres\` did not make: name a new or an empty folder`);
  if (names.includes("data") && (await majorOf(join(folder, "data"))) === null)
    throw refuse("its data are damaged (data/PG_VERSION is no number): put a copy of the whole folder back, or name another folder");
}

/** Makes what is missing. Only the process with the folder's lock may call it. Throws `config_invalid`, `store_error`. */
export async function openCluster(folder: string, programs: PostgresPrograms, signal: AbortSignal): Promise<PostgresCluster> {
  const data = join(folder, "data");
  const passwordFile = join(folder, "pgpass");
  for (const name of await readdir(folder))
    if (name.startsWith("draft-")) await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 });
  if (!(await isThere(data))) await makeData(folder, data, programs, signal);
  const major = await majorOf(data);
  if (major !== programs.major)
    throw new AlidadeError(
      "config_invalid",
      `${data} is of Postgres ${major}, and the installed package has ${programs.major}: install the package of ${major}, or name another folder`,
      { param: "folder" },
    );
  if (!(await isThere(passwordFile))) await setPassword(data, passwordFile, programs, signal);
  return { data, passwordFile, programs };
}

async function makeData(folder: string, data: string, programs: PostgresPrograms, signal: AbortSignal): Promise<void> {
  // What a killed start left running may still write into its own draft.
  const draft = await mkdtemp(join(folder, "draft-"));
  await giveTo(programs.user, draft);
  const options = ["-D", draft, "-U", "postgres", "-A", "reject", "-E", "UTF8", "--locale=C"];
  await runProgram(programs.initdb, options, programs.user, { signal });
  // The superuser has no password and no way in.
  await writeFile(join(draft, "pg_hba.conf"), `host ${database} ${role} all scram-sha-256\n`);
  await ask(draft, programs, [`CREATE ROLE ${role} LOGIN`, `CREATE DATABASE ${database} OWNER ${role}`], signal);
  await rename(draft, data);
}

/** A new one, where the file of an old one is gone. The file has the form of ~/.pgpass, for any host: nodes elsewhere take a copy. */
async function setPassword(data: string, file: string, programs: PostgresPrograms, signal: AbortSignal): Promise<void> {
  const password = randomBytes(24).toString("hex");
  await untilFree(() => ask(data, programs, [`ALTER ROLE ${role} PASSWORD '${password}'`], signal), signal);
  const draft = join(data, "../draft-pgpass");
  await writeFile(draft, `*:*:${database}:${role}:${password}\n`, { mode: 0o600, flag: "wx", flush: true });
  await rename(draft, file);
}

/** By a server that has no listener and ends with the last statement. */
async function ask(data: string, { postgres, user }: PostgresPrograms, statements: string[], signal: AbortSignal): Promise<void> {
  // A text that fails is not repeated in the log: it may hold the password.
  const options = ["--single", "-D", data, "-c", "exit_on_error=on", "-c", "log_min_error_statement=panic", "postgres"];
  await runProgram(postgres, options, user, { input: statements.map((statement) => `${statement};\n`).join(""), signal });
}

/** null: it is no folder of data. */
async function majorOf(data: string): Promise<string | null> {
  const text = await readFile(join(data, "PG_VERSION"), "utf8").catch(() => "");
  return /^\d+$/.test(text.trim()) ? text.trim() : null;
}
