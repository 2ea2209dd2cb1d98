import assert from "node:assert/strict";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { accessOf } from "../../../commands/service/service-tokens.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";

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
