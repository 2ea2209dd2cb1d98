import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { currentOwner, hostId } from "../../../base/host/owner.ts";
import { cli, cliProcess, jsonOf } from "../../fakes/processes/cli.ts";

type KnownImage = { id: string; names: string[]; parent?: string; layers: [string, number][] };

const megabyte = 1_000_000;
const system: [string, number] = ["system", 100 * megabyte];
const stored: KnownImage[] = [
  { id: "pulled", names: ["r.test/x:1"], layers: [system] },
  { id: "owned", names: ["alidade/owned:a"], parent: "pulled", layers: [system, ["chown", 10 * megabyte]] },
  { id: "old", names: ["alidade/built:old", "mine:1"], layers: [system, ["old", 30 * megabyte]] },
  { id: "running", names: ["alidade/built:running"], parent: "under", layers: [system, ["running", 5 * megabyte]] },
  { id: "under", names: ["alidade/built:under"], layers: [system] },
  { id: "wanted", names: ["alidade/built:wanted"], layers: [system, ["wanted", 5 * megabyte]] },
  { id: "local", names: ["own/image:1"], layers: [system] },
  { id: "foreign", names: ["other:1"], layers: [["other", 900 * megabyte]] },
];

/** Folders of this machine on an engine elsewhere. */
const volumes = ["mounted", "used", "unused", "new"].map((Name) => ({
  Name,
  Labels: { "alidade.mount": "x", "alidade.mount.bytes": String(20 * megabyte) },
  CreatedAt: new Date(Name === "new" ? Date.now() : 1_000).toISOString(),
}));

/** A Docker engine with these images, one of which a stopped container uses; and a cache that knows who used them. */
async function engineWithImages(t: TestContext): Promise<{ env: Record<string, string>; removed: string[] }> {
  const removed: string[] = [];
  const server = createServer(({ method, url = "" }, response) => {
    const answer = (body: unknown) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    const [, name = ""] = /\/(?:images|volumes)\/(.+?)(?:\/history)?(?:\?|$)/.exec(decodeURIComponent(url)) ?? [];
    const asked = stored.find(({ id, names }) => id === name || names.includes(name));
    if (method === "DELETE") {
      removed.push(name);
      return url.includes("/volumes/") ? response.writeHead(204).end() : answer([]);
    }
    if (url.includes("/history"))
      return answer(asked?.layers.map(([CreatedBy, Size]) => ({ Created: 1, CreatedBy, Size })).reverse() ?? []);
    if (url.includes("/images/json"))
      return answer(
        stored
          .filter(({ names }) => !names.every((each) => removed.includes(each)))
          .map(({ id, names, parent = "", layers }) => ({
            Id: id,
            RepoTags: names.filter((each) => !removed.includes(each)),
            RepoDigests: [],
            ParentId: parent,
            Created: 1,
            Size: layers.reduce((sum, [, bytes]) => sum + bytes, 0),
          })),
      );
    if (url.includes("/volumes?")) return answer({ Volumes: volumes.filter(({ Name }) => !removed.includes(Name)) });
    if (url.includes("/containers/json")) {
      const Mounts = [{ Type: "bind" }, { Type: "volume", Name: "mounted" }];
      return answer(url.includes("ancestor") ? [] : [{ Id: "c1", Names: ["/alidade-c1"], ImageID: "running", Mounts }]);
    }
    return response.end("OK");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const folder = await mkdtemp(join(tmpdir(), "alidade-images-"));
  t.after(async () => {
    server.close();
    await rm(folder, { recursive: true });
  });
  await mkdir(join(folder, "image-uses"));
  const dead = { owner: "1:1", host: await hostId(), pulled: null };
  const uses: Record<string, object> = {
    pulled: { ...dead, at: 3_000, run_id: "r3", tasks: ["t3"], pulled: "r.test/x:1" },
    old: { ...dead, at: 2_000, run_id: "r2", tasks: ["t2"] },
    wanted: { ...dead, owner: await currentOwner(), at: 1_000, run_id: "r1", tasks: ["t1"] },
    unused: { ...dead, at: 2_500, run_id: null, tasks: [] },
    used: { ...dead, owner: await currentOwner(), at: 2_500, run_id: null, tasks: [] },
    local: { ...dead, at: 500, run_id: "r0", tasks: ["t0"] },
  };
  for (const [id, use] of Object.entries(uses))
    await writeFile(join(folder, "image-uses", `${id}.jsonl`), `no JSON\n${JSON.stringify(use)}\n`);
  const env = { DOCKER_HOST: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`, ALIDADE_CACHE: folder };
  return { env, removed };
}

test("images lists what Alidade made, pulled or used, with what keeps it, and nothing else of the engine", {
  timeout: 300_000,
}, async (t) => {
  const { env } = await engineWithImages(t);
  const listed = jsonOf<{ images: Record<string, unknown>[] }>(await cliProcess(["images", "list", "--json"], { env })).images;
  const short = listed.map(({ id, kind, tasks, in_use }) => [id, kind, String(tasks), String(in_use).split(" ")[0]]);
  assert.deepEqual(
    new Set(short.map((row) => row.join(" "))),
    new Set([
      "pulled pulled t3 null",
      "owned owned t3 null",
      "old built t2 null",
      "wanted built t1 run",
      "local local t0 null",
      "running built  container",
      "under built  container",
      "mounted mount  container",
      "used mount  process",
      "unused mount  null",
      "new mount  perhaps",
    ]),
  );
  const { stdout } = await cliProcess(["images", "list"], { env });
  assert.match(stdout, /alidade\/built:wanted .*105\.0 MB.*t1 .*run r1/);
});

test("images prune removes the least recently used down to a size or a number, and never what is in use or a person's", {
  timeout: 300_000,
}, async (t) => {
  const { env, removed } = await engineWithImages(t);
  const prune = async (...flags: string[]) =>
    jsonOf<{ removed: { id: string }[]; images_left: number; bytes_left: number }>(
      await cliProcess(["images", "prune", "--json", ...flags], { env }),
    );
  const dry = await prune("--keep", "0", "--dry-run");
  assert.deepEqual([dry.removed.map(({ id }) => id).sort(), removed], [["old", "owned", "pulled", "unused"], []]);
  // 100 that all share, 10 + 30 + 5 + 5 of their own, and four volumes.
  const fitting = await prune("--budget", "230MB");
  assert.deepEqual([fitting.removed, fitting.bytes_left], [[], 230 * megabyte]);
  const tight = await prune("--budget", "0.2 GB");
  assert.deepEqual([tight.removed.map(({ id }) => id), tight.bytes_left], [["old"], 200 * megabyte]);
  assert.deepEqual(removed, ["alidade/built:old"], "the person's own name of it stays");
  const tighter = await prune("--budget", "0.19 GB");
  assert.deepEqual([tighter.removed.map(({ id }) => id), tighter.bytes_left, removed.at(-1)], [["unused"], 180 * megabyte, "unused"]);
  const all = await prune("--keep", "1");
  assert.deepEqual(removed.slice(2).sort(), ["alidade/owned:a", "r.test/x:1"]);
  assert.ok(all.images_left >= 4 && all.bytes_left === 170 * megabyte, JSON.stringify(all));
});

test("what cannot be meant is refused by flag and value before the engine is asked", async () => {
  for (const [args, words] of [
    [["prune"], /--keep <number> or --budget <size>/],
    [["prune", "--keep", "-1"], /--keep is -1/],
    [["prune", "--budget", "lots"], /--budget is "lots"/],
    [["list", "tasks/"], /takes no tasks: tasks\//],
    [["prepare"], /needs tasks/],
    [["polish"], /"polish" is no action/],
    [["prepare", "examples/demo/tasks", "--sandbox", "process"], /made from no images/],
  ] as const) {
    const { code, stderr } = await cli(["images", ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, words);
  }
});
