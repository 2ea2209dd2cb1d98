/**
 * Reads safetensors, the file format of weights. A file has the length of its header, the header in JSON, and the numbers of
 * each tensor, little-endian. Numbers of 16 bits are widened.
 */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";

/** The embedded engine is for tiny models: with a file of this size each token takes a second. */
const maxBytes = 256 * 1024 * 1024;

const Entry = z.strictObject({
  dtype: z.string(),
  shape: z.array(z.int().nonnegative()),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});
const Header = z.object({ __metadata__: z.record(z.string(), z.string()).optional() }).catchall(Entry);

export type Tensor = { shape: readonly number[]; numbers: Float64Array };

/** Throws an error that names the file and says what is wrong with it. */
export async function readSafetensors(path: string): Promise<{ tensors: Map<string, Tensor>; sha256: string }> {
  const { size } = await stat(path);
  if (size > maxBytes) throw new Error(`${path} has ${size} bytes, and the embedded engine reads at most ${maxBytes}: serve it with vLLM`);
  const file = await readFile(path);
  const headerEnd = 8 + (file.length < 8 ? 0 : Number(file.readBigUInt64LE(0)));
  if (file.length < 8 || headerEnd > file.length) throw new Error(`${path} is no safetensors file, or only a part of one`);
  const { __metadata__: _about, ...entries } = headerOf(path, file.toString("utf8", 8, headerEnd));
  const data = file.subarray(headerEnd);
  const tensors = new Map(Object.entries(entries).map(([name, entry]) => [name, tensorOf(`${path}: ${name}`, entry, data)]));
  return { tensors, sha256: createHash("sha256").update(file).digest("hex") };
}

function headerOf(path: string, text: string): z.infer<typeof Header> {
  try {
    return Header.parse(readJson(text));
  } catch (error) {
    throw new Error(`${path}: the header is not understood: ${messageOf(error)}`, { cause: error });
  }
}

function tensorOf(name: string, { dtype, shape, data_offsets: [start, end] }: z.infer<typeof Entry>, data: Buffer): Tensor {
  const format = formats.get(dtype);
  if (format === undefined) throw new Error(`${name} is stored as ${dtype}; the embedded engine reads ${[...formats.keys()].join(", ")}`);
  const count = shape.reduce((product, side) => product * side, 1);
  if (end > data.length || end - start !== count * format.bytes) throw new Error(`${name} does not have the bytes of its shape [${shape}]`);
  const numbers = new Float64Array(count);
  for (let at = 0; at < count; at += 1) numbers[at] = format.read(data, start + at * format.bytes);
  return { shape, numbers };
}

const single = new DataView(new ArrayBuffer(4));

const formats = new Map<string, { bytes: number; read(data: Buffer, at: number): number }>([
  ["F32", { bytes: 4, read: (data, at) => data.readFloatLE(at) }],
  ["BF16", { bytes: 2, read: (data, at) => bfloat(data.readUInt16LE(at)) }],
]);

/** bfloat16 is the upper half of a 32-bit float. */
function bfloat(bits: number): number {
  single.setUint32(0, bits * 65_536);
  return single.getFloat32(0);
}
