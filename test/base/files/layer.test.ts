import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { Readable } from "node:stream";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import { keepLayer, type LayerEntry, openLayer, temporaryLayers } from "../../../base/files/layer.ts";
import { LayerBounds } from "../../../base/files/layer-bounds.ts";
import { strayErrors } from "../../fakes/machine/stray-errors.ts";

const rest = { kind: "added", mode: 0o644, owner: null, mtime: new Date(0), target: null, content: null } as const;

function link(target: Buffer): LayerEntry {
  return { ...rest, path: "/work/link", type: "link", mode: 0o777, size: 0, target: target.toString("utf8") };
}

function file(path: string, content = ""): LayerEntry {
  return { ...rest, path, type: "file", size: content.length, content: once(content) };
}

async function* once(content: string): AsyncGenerator<Buffer> {
  yield Buffer.from(content);
}

/** Empty files, counted as a sandbox counts them, and then what the agent has put behind them. */
async function* counted(files: number, last: (bounds: LayerBounds) => LayerEntry | null): AsyncGenerator<LayerEntry> {
  const bounds = new LayerBounds({ most: { files: 20_000, megabytes: 256 } });
  for (let at = 0; at < files; at++) {
    bounds.meets(`/work/${at}`);
    bounds.takes(`/work/${at}`, 0);
    yield file(`/work/${at}`);
  }
  const entry = last(bounds);
  if (entry !== null) yield entry;
}

test("a link whose target is not UTF-8 is refused: it would lead elsewhere when it is put back", async () => {
  await using kept = await temporaryLayers();
  await assert.rejects(keepLayer(Readable.from([link(Buffer.from([0x61, 0xff]))]), kept.folder), {
    code: "output_unreadable",
    message: "The target of the link /work/link is not UTF-8.",
  });
  assert.deepEqual(await readdir(kept.folder), []);
});

const hole = (bounds: LayerBounds): LayerEntry => {
  bounds.takes("/work/hole", 100e9);
  return file("/work/hole");
};
const noText = (bounds: LayerBounds): null => {
  bounds.meets(`/work/${Buffer.from([0xff])}`);
  return null;
};
const gone = (): never => {
  throw new AlidadeError("sandbox_died", "The sandbox is gone.");
};

for (const [what, code, entries] of [
  ["20 050 empty files", "output_too_large", counted(20_050, () => null)],
  ["3 000 files and a hole", "output_too_large", counted(3_000, hole)],
  ["3 000 files and a link whose target is no text", "output_unreadable", counted(3_000, () => link(Buffer.from([0xff])))],
  ["3 000 files and a name that is no text", "output_unreadable", counted(3_000, noText)],
  ["3 000 files and then no sandbox", "sandbox_died", counted(3_000, gone)],
] as const)
  test(`${what} are one typed failure, and nothing else fails`, async (t) => {
    const stray = strayErrors(t);
    await using kept = await temporaryLayers();
    await assert.rejects(keepLayer(entries, kept.folder), { code });
    assert.deepEqual(await stray(), []);
    assert.deepEqual(await readdir(kept.folder), []);
  });

test("a file that has less than its size says ends the keeping, and the reading of the sandbox with it", async (t) => {
  const stray = strayErrors(t);
  await using kept = await temporaryLayers();
  let isOver = false;
  async function* entries(): AsyncGenerator<LayerEntry> {
    try {
      // Its size says more than it has, so what packs it fails.
      yield { ...file("/work/short", "short"), size: 10 };
    } finally {
      isOver = true;
    }
  }
  await assert.rejects(keepLayer(entries(), kept.folder), /not of the 10 bytes/);
  assert.equal(isOver, true);
  assert.deepEqual(await stray(), []);
});

test("all that a layer holds is read back as it was kept", async () => {
  await using kept = await temporaryLayers();
  const name = `/work/${"long/".repeat(60)}ünï`;
  const entries: LayerEntry[] = [
    { ...rest, path: "/work/folder", type: "folder", mode: 0o1750, size: 0 },
    { ...file(name, "x".repeat(200_000)), mode: 0o4640, owner: { uid: 4_000_000, gid: 5 } },
    { ...rest, path: "/work/second", type: "hardlink", size: 0, target: name },
    link(Buffer.from("ünï".repeat(50))),
    { ...rest, path: "/work/gone", type: "deleted", kind: "deleted", mode: 0, size: 0 },
  ];
  const work = await keepLayer(Readable.from(entries), kept.folder);
  const opened = await openLayer(kept.folder, work.sha256);
  assert.deepEqual(opened, work);
  assert.deepEqual(
    work.changes.map(({ path, mode, size }) => [path, mode, size]),
    [
      ["/work/folder", 0o1750, 0],
      ["/work/gone", 0, 0],
      ["/work/link", 0o777, 0],
      [name, 0o4640, 200_000],
      ["/work/second", 0o644, 200_000],
    ],
  );
});
