/** What goes in and comes out: files, and the layer of what was changed. */

import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TreeFile } from "../../base/files/file-tree.ts";
import type { LayerEntry } from "../../base/files/layer.ts";
import { isIsolated } from "../../base/schema/rollout.ts";
import type { Sandbox } from "../sandbox.ts";
import { inSandbox, ofSandbox, type SandboxCheck, said } from "./in-sandbox.ts";

export const fileChecks: readonly SandboxCheck[] = [
  ofSandbox("files that are written are read back, and seen by commands in the workdir", async (sandbox) => {
    await sandbox.writeFiles([file("a/b.txt", "hello\n"), file("run.sh", "#!/bin/sh\necho ran\n", 0o755)]);
    assert.deepEqual([await said(sandbox, "cat a/b.txt"), (await sandbox.exec(["./run.sh"])).stdout], ["hello\n", "ran\n"]);
    assert.equal(await said(sandbox, "echo more >> a/b.txt && rm run.sh && cat a/b.txt"), "hello\nmore\n", "they belong to its user");
    assert.deepEqual(
      (await sandbox.readFiles("/work")).map(({ path, content }) => [path, content.toString()]),
      [["a/b.txt", "hello\nmore\n"]],
    );
  }),
  ofSandbox("a path that leaves its folder is refused, and a folder that is not there is not found", async (sandbox) => {
    for (const path of ["../escape", "/tmp/escape", "a/../../escape"])
      await assert.rejects(sandbox.writeFiles([file(path, "x")]), { code: "request_invalid" }, path);
    await assert.rejects(sandbox.readFiles("/nowhere"), { code: "not_found" });
  }),
  ofSandbox("only regular files are read, no link is followed, and too many or too large ones are `output_too_large`", async (sandbox) => {
    await said(sandbox, "echo one > one; ln -s /etc/passwd link; ln -s /etc folder; mkfifo pipe; echo two > two");
    assert.deepEqual(
      (await sandbox.readFiles("/work")).map(({ path }) => path),
      ["one", "two"],
    );
    await assert.rejects(sandbox.readFiles("/work", { max_files: 1 }), { code: "output_too_large" });
    await assert.rejects(sandbox.readFiles("/work", { max_bytes: 5 }), { code: "output_too_large" });
    assert.deepEqual(
      (await sandbox.readFiles("/work", { exclude: ["two"], max_files: 1 })).map(({ path }) => path),
      ["one"],
    );
  }),
  {
    says: "a mount shows the host's files inside",
    async check(backend, context) {
      const folder = await mkdtemp(join(tmpdir(), "alidade-contract-"));
      try {
        // The agent's user must be able to enter it.
        await chmod(folder, 0o755);
        await writeFile(join(folder, "word"), "of the host\n", { mode: 0o644 });
        const body = async (sandbox: Sandbox): Promise<void> => {
          const place = sandbox.path("/opt/alidade-contract");
          assert.equal((await sandbox.exec(["cat", `${place}/word`])).stdout, "of the host\n");
          if (!isIsolated(backend.capabilities.isolation)) return;
          assert.notEqual((await sandbox.exec(["sh", "-c", `echo x > ${place}/word`])).exit_code, 0, "it is read-only");
        };
        await inSandbox(backend, context, body, { mounts: { "/opt/alidade-contract": folder } });
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  },
  ofSandbox("changes are told with type, mode, target and content, and nothing that did not change", async (sandbox) => {
    await said(
      sandbox,
      "mkdir sub; printf text > sub/file; chmod 640 sub/file; ln -s ../elsewhere sub/link; printf '#!/bin/sh' > run; chmod 755 run",
    );
    await sandbox.freeze();
    const told = new Map<string, string>();
    for await (const entry of sandbox.changes(["/work"])) told.set(entry.path, await describe(entry));
    assert.equal(told.get("/work/sub/file"), "file 640 text");
    assert.equal(told.get("/work/run"), "file 755 #!/bin/sh");
    assert.match(told.get("/work/sub/link") ?? "not told", /^link \d+ \.\.\/elsewhere$/);
    const others = [...told.keys()].filter((path) => !/^\/work(\/(sub(\/(file|link))?|run))?$/.test(path));
    assert.deepEqual(others, [], "these did not change");
  }),
  {
    says: "changes of one sandbox are put into another one in place of what stands there",
    check: (backend, context) =>
      inSandbox(backend, context, async (from) => {
        await said(from, "mkdir d; printf new > d/file; chmod 640 d/file; ln -s d/file link; printf x > was-folder");
        await from.freeze();
        await inSandbox(backend, context, async (to) => {
          await said(to, "mkdir -p d was-folder/deep; printf old > d/file; printf old > link");
          await to.putEntries(from.changes(["/work"]));
          assert.equal(await said(to, "cat d/file; readlink link; cat was-folder; ls -l d/file | cut -c1-10"), "newd/file\nx-rw-r-----\n");
        });
      }),
  },
  ofSandbox("a file that is all hole ends the reading with the policy's own failure, before it is read", async (sandbox) => {
    if (sandbox.facts.disk_limit === "watchdog") return;
    await said(sandbox, "truncate -s 100G hole 2>/dev/null || truncate -s 300M hole");
    await sandbox.freeze();
    await assert.rejects(Array.fromAsync(sandbox.changes(["/work"]), describe), { code: "output_too_large" });
  }),
];

function file(path: string, content: string, mode = 0o644): TreeFile {
  return { path, content: Buffer.from(content), mode };
}

async function describe({ type, mode, target, content }: LayerEntry): Promise<string> {
  const chunks: Buffer[] = [];
  if (content !== null) for await (const chunk of content) chunks.push(chunk);
  return `${type} ${(mode & 0o7777).toString(8)} ${target ?? Buffer.concat(chunks).toString()}`;
}
