/**
 * The password of a ledger's URL that has none, from the file that all programs of Postgres read: PGPASSFILE, else ~/.pgpass.
 * node-postgres still reads it, warns each time, and stops with its next major version.
 */
import { readFile, stat } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { AlidadeError } from "../../../../base/errors.ts";

/** The URL with the password of the first line that fits; as it is where none does. Throws `config_invalid` where others may read the file. */
export async function withPassword(url: string, variables: NodeJS.ProcessEnv = process.env): Promise<string> {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || parsed.password !== "" || variables.PGPASSWORD) return url;
  const file = variables.PGPASSFILE || join(homedir(), ".pgpass");
  const found = passwordFor(wordsOf(parsed, variables), await readFile(file, "utf8").catch(() => ""));
  if (found === null) return url;
  if (((await stat(file)).mode & 0o077) !== 0)
    throw new AlidadeError("config_invalid", `others may read the password in ${file}, which Postgres does not permit: chmod 600 ${file}`, {
      param: "ledger",
    });
  parsed.password = found;
  return parsed.href;
}

/** Host, port, database and user, as node-postgres understands the URL. */
function wordsOf({ hostname, port, pathname, username, searchParams }: URL, variables: NodeJS.ProcessEnv): string[] {
  const host = hostname.replace(/^\[(.*)\]$/, "$1") || searchParams.get("host") || variables.PGHOST || "localhost";
  const user = decodeURIComponent(username) || searchParams.get("user") || variables.PGUSER || userInfo().username;
  return [host, port || variables.PGPORT || "5432", decodeURIComponent(pathname.slice(1)) || variables.PGDATABASE || user, user];
}

/** Lines are `host:port:database:user:password`; `*` stands for any word, and a backslash before a colon or a backslash. */
function passwordFor(words: string[], text: string): string | null {
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith("#")) continue;
    const fields = [...line.matchAll(/(?:^|:)((?:\\.|[^\\:])*)/g)].map(([, field = ""]) => field.replace(/\\(.)/g, "$1"));
    const password = fields[words.length];
    if (password && words.every((word, at) => fields[at] === "*" || fields[at] === word)) return password;
  }
  return null;
}
