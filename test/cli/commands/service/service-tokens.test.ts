import assert from "node:assert/strict";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { accessOf, tokensOf } from "../../../../cli/commands/service/service-tokens.ts";
import { inTerminal, terminal } from "../../../../cli/commands/terminal.ts";
import { roles } from "../../../../service/index.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("service-tokens");

test("the token that is made at the first start stays, for this user alone", async () => {
  const { token, tokens } = await accessOf(scratch, []);
  assert.match(token ?? "", /^sk-ali-/);
  assert.deepEqual(await accessOf(scratch, []), { token, tokens });
  assert.deepEqual(await readdir(scratch), ["token"]);
  assert.equal((await stat(join(scratch, "token"))).mode & 0o777, 0o600);
});

test("an empty file of the token, as a full disk leaves one, opens the service to no one: another token is made", async () => {
  const folder = join(scratch, "emptied");
  await mkdir(folder);
  await writeFile(join(folder, "token"), "\n");
  const { token, tokens } = await accessOf(folder, []);
  assert.match(token ?? "", /^sk-ali-/);
  assert.equal(tokens[0]?.token, token);
  assert.equal(await readFile(join(folder, "token"), "utf8"), token);
});

test("a token sees the sets of its namespace, and without one all sets", () => {
  const env = { ADMIN: "a", TEAM: "b", WATCHER: "c", BOTH: "d", ALL: "e" };
  const read = (...words: string[]) => inTerminal({ ...terminal(), env }, () => tokensOf(words));
  assert.deepEqual(read("ADMIN", "TEAM@team-b", "WATCHER=read", "BOTH=submit,control@team-b", "ALL=submit@*"), [
    { token: "a", roles, namespace: null },
    { token: "b", roles: ["submit", "read"], namespace: "team-b" },
    { token: "c", roles: ["read"], namespace: null },
    { token: "d", roles: ["submit", "control"], namespace: "team-b" },
    { token: "e", roles: ["submit"], namespace: null },
  ]);
  const refused = (words: string[], message: RegExp) =>
    assert.throws(() => read(...words), { code: "config_invalid", param: "token_env", message });
  refused(["ADMIN", "TEAM=submit,read"], /gives submit to ADMIN and TEAM, and each would see all sets: .*TEAM=submit,read@team-b/);
  refused(["TEAM=read@team b"], /gives TEAM the namespace "team b": give letters/);
  refused(["TEAM@"], /gives TEAM the namespace ""/);
  refused(["TEAM=write@b"], /knows no role "write"/);
  refused(["NONE@b"], /names NONE, which is not set/);
  env.ALL = "b";
  refused(["TEAM@team-b", "ALL=read"], /names TEAM and ALL, which hold one token/);
});
