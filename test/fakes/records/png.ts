/** A real PNG of one colour: what a screenshot is to everything that does not look at it. */
import { crc32, deflateSync } from "node:zlib";

export function pngOf(width: number, height: number, [red, green, blue]: readonly [number, number, number] = [200, 30, 30]): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([red, green, blue]))]);
  const pixels = deflateSync(Buffer.concat(new Array<Buffer>(height).fill(row)));
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", header),
    chunk("IDAT", pixels),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** A PNG of one colour with this many bytes: what fills it up is a chunk that readers skip. */
export function pngOfBytes(width: number, height: number, bytes: number): Buffer {
  const plain = pngOf(width, height);
  const end = plain.length - chunk("IEND", Buffer.alloc(0)).length;
  const filler = chunk("fiLl", Buffer.alloc(bytes - plain.length - 12));
  return Buffer.concat([plain.subarray(0, end), filler, plain.subarray(end)]);
}

export function pngUrl(...args: Parameters<typeof pngOf>): string {
  return `data:image/png;base64,${pngOf(...args).toString("base64")}`;
}

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
