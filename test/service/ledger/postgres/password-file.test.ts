import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { withPassword } from "../../../../service/ledger/postgres/connection/password-file.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("password-file");
const lines = [
  "# host:port:database:user:password",
  "db:6432:rollouts:alidade:other-port",
  "*:*:rollouts:alidade:a\\:b\\\\c",
  "\\:\\:1:*:*:*:six",
  "",
];

async function fileWith(name: string, mode: number): Promise<string> {
  const file = join(scratch, name);
  await writeFile(file, lines.join("\n"));
  await chmod(file, mode);
  return file;
}

test("a URL without a password gets that of the first line that fits its host, port, database and user", async () => {
  const PGPASSFILE = await fileWith("pgpass", 0o600);
  const passwordIn = async (url: string) => decodeURIComponent(new URL(await withPassword(url, { PGPASSFILE })).password);
  assert.equal(await passwordIn("postgres://alidade@db/rollouts?schema=s"), "a:b\\c");
  assert.equal(await passwordIn("postgres://alidade@db:6432/rollouts"), "other-port");
  assert.equal(await passwordIn("postgres://u@[::1]/d"), "six");
  assert.equal(await passwordIn("postgres://alidade@db/others"), "");
  assert.equal(await passwordIn("postgres://alidade:own@db/rollouts"), "own");
  const url = "postgres://alidade@db/rollouts";
  assert.equal(await withPassword(url, { PGPASSFILE, PGPASSWORD: "given" }), url);
  assert.equal(await withPassword(url, { PGPASSFILE: join(scratch, "absent") }), url);
});

test("a file that others may read is refused where its password is needed", async () => {
  const PGPASSFILE = await fileWith("open", 0o644);
  await assert.rejects(withPassword("postgres://alidade@db/rollouts", { PGPASSFILE }), /others may read the password in .*: chmod 600 /);
  assert.equal(await withPassword("postgres://alidade@db/others", { PGPASSFILE }), "postgres://alidade@db/others");
});
