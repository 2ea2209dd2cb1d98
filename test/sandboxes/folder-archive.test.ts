/** What is mounted, as a backend gets it whose sandboxes do not see this machine's folders. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, lstat, lutimes, mkdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import { Limits } from "../../base/schema/task.ts";
import { folderArchive, folderContent } from "../../sandboxes/folder-archive.ts";
import { localProcess } from "../../sandboxes/process.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("folder-archive");

async function packIn(name: string, word = "hello"): Promise<string> {
  const pack = join(scratch, name);
  await mkdir(join(pack, "bin"), { recursive: true });
  await writeFile(join(pack, "bin", "say"), `#!/bin/sh\necho ${word}\n`);
  await chmod(join(pack, "bin", "say"), 0o755);
  await symlink("bin/say", join(pack, "link"));
  for (const path of ["bin/say", "bin", "link", "."]) await lutimes(join(pack, path), 1_000, 1_000);
  return pack;
}

/** Another machine: it has what was sent to it, by content. */
class Elsewhere {
  readonly sent: string[] = [];
  readonly #store = join(scratch, "elsewhere");

  async folderOf(folder: string): Promise<string> {
    const { hash, bytes } = await folderContent(folder);
    const place = join(this.#store, hash);
    if (this.sent.includes(hash)) return place;
    const archive = Buffer.concat(await Array.fromAsync(folderArchive(folder)));
    assert.deepEqual([createHash("sha256").update(archive).digest("hex"), archive.length], [hash, bytes]);
    this.sent.push(hash);
    await mkdir(place, { recursive: true });
    await new Promise<void>((resolve, reject) => {
      const tar = execFile("tar", ["-xpf", "-", "-C", place], (error) => (error ? reject(error) : resolve()));
      tar.stdin?.end(archive);
    });
    return place;
  }
}

test("a backend elsewhere gets mounts by their content, each content once, and never by a path of this machine", async (t) => {
  const elsewhere = new Elsewhere();
  const backend: SandboxBackend = {
    ...localProcess,
    name: "elsewhere",
    async create(spec, signal) {
      const mounts = Object.entries(spec.mounts).map(async ([inside, folder]) => [inside, await elsewhere.folderOf(folder)]);
      return localProcess.create({ ...spec, mounts: Object.fromEntries(await Promise.all(mounts)) }, signal);
    },
  };
  const own = { run_id: "elsewhere", owner: await currentOwner(), image: null, workdir: "/work", env: {}, limits: Limits.parse({}) };
  // The same files in another folder are the same content; another word is not.
  for (const [name, word] of [
    ["one", "hello"],
    ["two", "hello"],
    ["other", "bye"],
  ] as const) {
    await using sandbox = await backend.create({ ...own, mounts: { "/opt/pack": await packIn(name, word) } }, t.signal);
    const { stdout } = await sandbox.exec([join(sandbox.path("/opt/pack"), "link")]);
    assert.equal(stdout, `${word}\n`);
  }
  assert.equal(elsewhere.sent.length, 2);
  const place = await elsewhere.folderOf(join(scratch, "one"));
  assert.deepEqual([await readlink(join(place, "link")), (await lstat(join(place, "bin/say"))).mode & 0o777], ["bin/say", 0o755]);
  assert.equal(await readFile(join(place, "bin/say"), "utf8"), "#!/bin/sh\necho hello\n");
});
