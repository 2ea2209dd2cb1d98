import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import type Docker from "dockerode";
import { bootstrap } from "../../../../../sandboxes/docker/images/made/bootstrap.ts";

test("a bootstrap that is aborted leaves no torn image", { timeout: 300_000 }, async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-images-"));
  const path = process.env.PATH;
  process.env.PATH = `${place}:${path}`;
  t.after(() => {
    process.env.PATH = path;
    return rm(place, { recursive: true });
  });
  const mmdebstrap = join(place, "mmdebstrap");
  await writeFile(mmdebstrap, `#!/bin/sh\nprintf '%s\\n' "$@" > ${place}/arguments\necho torn\nexec sleep 1000\n`);
  await chmod(mmdebstrap, 0o755);

  const stop = new AbortController();
  const images = new Set<string>();
  const docker = {
    importImage: async (tar: Readable, { repo, tag }: { repo: string; tag: string }) => {
      for await (const _chunk of tar) stop.abort(new Error("Ctrl-C"));
      images.add(`${repo}:${tag}`);
      return Readable.from([]);
    },
    getImage: (name: string) => ({
      tag: async ({ repo, tag }: { repo: string; tag: string }) => images.add(`${repo}:${tag}`),
      remove: async () => images.delete(name),
    }),
  } as unknown as Docker;
  const system = { image: "test/torn:1", packages: [], left_out: [], changes: [] };
  await assert.rejects(bootstrap(docker, system, { suite: "bookworm", files: [] }, stop.signal));
  assert.deepEqual([...images], []);
  assert.match(await readFile(join(place, "arguments"), "utf8"), /^--aptopt=APT::Cmd::Pattern-Only "true"$/m);
});
