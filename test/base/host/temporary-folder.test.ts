/** Which folders a reaper removes: by their owner, and where none is written, by age. */
import assert from "node:assert/strict";
import { mkdir, readdir, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { currentOwner, hostId } from "../../../base/host/owner.ts";
import { reasonToRemove } from "../../../base/host/reap.ts";
import type { Finding } from "../../../engines/examine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cliProcess } from "../../fakes/processes/cli.ts";

const scratch = scratchFolder("temporary-folder");
const hour = 3600;

async function folderOf(path: string, ageHours: number, owner?: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await writeFile(join(path, "file"), "content");
  if (owner !== undefined) await writeFile(join(path, "owner.json"), owner);
  const then = Date.now() / 1000 - ageHours * hour;
  await utimes(path, then, then);
}

test("reap removes a folder that names no owner when it is a day old, and neither a younger one nor a stranger's", async () => {
  const temporary = join(scratch, "tmp");
  const cache = join(scratch, "cache");
  const living = JSON.stringify({ run_id: "r", owner: await currentOwner(), host: await hostId(), lease: Date.now() + hour * 1000 });
  const dead = JSON.stringify({ run_id: "r", owner: `${process.pid}:1`, host: await hostId(), lease: Date.now() + hour * 1000 });
  const otherBoot = JSON.stringify({ run_id: "r", owner: "1:1", host: "another-boot", lease: Date.now() - 1000 });
  await folderOf(join(temporary, "alidade-sandbox-old"), 25);
  await folderOf(join(temporary, "alidade-sandbox-torn"), 25, living.slice(0, 20));
  await folderOf(join(temporary, "alidade-sandbox-dead"), 0, dead);
  await folderOf(join(temporary, "alidade-sandbox-boot"), 0, otherBoot);
  await folderOf(join(temporary, "alidade-home-dead"), 0, dead);
  await folderOf(join(temporary, "alidade-npm-old"), 25);
  await folderOf(join(temporary, "alidade-layers-old"), 25);
  await folderOf(join(cache, "sources", "0123.draft-a1B2c3"), 25);
  await folderOf(join(cache, "sources", "0123"), 25);
  await folderOf(join(cache, "sources", "4567.draft-a1B2c3"), 1);
  await folderOf(join(temporary, "alidade-sandbox-new"), 1);
  await folderOf(join(temporary, "alidade-sandbox-used"), 25, living);
  await folderOf(join(temporary, "others"), 25);
  await symlink(join(temporary, "others"), join(temporary, "alidade-sandbox-link"));
  const env = { TMPDIR: temporary, ALIDADE_CACHE: cache, DOCKER_HOST: `unix://${scratch}/none.sock` };
  const before = (await readdir(temporary)).sort();
  const looked = await cliProcess(["doctor", "--json"], { env });
  const { trainable, machine } = JSON.parse(looked.stdout) as { trainable: null; machine: Finding[] };
  const left = machine.find(({ what }) => what === "left behind");
  assert.deepEqual([looked.code, trainable, left?.status, left?.todo], [0, null, "gap", "alidade reap"], looked.stderr);
  assert.match(left?.found ?? "", /alidade-npm-old \(it names no owner and is 25 hours old\).*; and 3 more$/s);
  assert.deepEqual(
    machine.map(({ what }) => what),
    ["Docker", "left behind", "memory", "disk"],
  );
  assert.deepEqual((await readdir(temporary)).sort(), before, "doctor removes nothing");
  const { code, stdout, stderr } = await cliProcess(["reap", "--json"], { env });
  assert.equal(code, 0, stderr);
  assert.deepEqual((await readdir(temporary)).sort(), ["alidade-sandbox-link", "alidade-sandbox-new", "alidade-sandbox-used", "others"]);
  assert.deepEqual((await readdir(join(cache, "sources"))).sort(), ["0123", "4567.draft-a1B2c3"]);
  const { removed } = JSON.parse(stdout) as { removed: string[] };
  assert.equal(removed.length, 8, stdout);
  assert.match(removed.join("\n"), /alidade-sandbox-old \(it names no owner and is 25 hours old\)/);
});

test("who goes on with a run removes what another boot or container left of it, and nothing of other runs", async () => {
  const lease = Date.now() + hour * 1000;
  const found = { run_id: "mine", owner: "1:1", host: "another-boot", lease };
  assert.equal(await reasonToRemove(found, "here", {}), null);
  assert.equal(await reasonToRemove({ ...found, run_id: "other" }, "here", { run: "mine" }), null);
  assert.match((await reasonToRemove(found, "here", { run: "mine" })) ?? "", /its run goes on/);
  const living = { ...found, host: "here", owner: await currentOwner() };
  assert.equal(await reasonToRemove(living, "here", { run: "mine" }), null, "a living owner on this host keeps it");
});

test("what died a moment ago is left to who goes on with its run, while others clear away", async () => {
  const dead = { run_id: "r", owner: `${process.pid}:1`, host: "here", lease: Date.now() + hour * 1000, made: Date.now() - 5_000 };
  assert.equal(await reasonToRemove(dead, "here", { min_age_ms: 60_000 }), null);
  assert.match((await reasonToRemove(dead, "here", { min_age_ms: 1_000 })) ?? "", /is gone/);
  assert.match((await reasonToRemove(dead, "here", {})) ?? "", /is gone/);
});
