/** Writes a picture as PNG. Equal pixels are equal bytes. */
import { promisify } from "node:util";
import { constants, crc32, deflate } from "node:zlib";

const deflated = promisify(deflate);

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Each byte is written as its difference to the one above: rows of a screen are alike. */
const filterUp = 2;
/** Half of the time of the default, and a tenth more bytes. */
const level = 3;

/** `pixels`: rows of blue, green, red and an unused byte. */
export async function encodePng(width: number, height: number, pixels: Buffer): Promise<Buffer> {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8); // eight bits of each of three colours
  const data = await deflated(filtered(width, height, pixels), { level, strategy: constants.Z_DEFAULT_STRATEGY });
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

function filtered(width: number, height: number, pixels: Buffer): Buffer {
  const stride = pixels.length / height;
  const rowBytes = width * 3 + 1;
  const rows = Buffer.allocUnsafe(rowBytes * height);
  for (let y = 0; y < height; y++) {
    let to = y * rowBytes;
    rows[to++] = y === 0 ? 0 : filterUp;
    for (let from = y * stride, end = from + width * 4; from < end; from += 4)
      for (let colour = 2; colour >= 0; colour--) {
        const above = y === 0 ? 0 : (pixels[from - stride + colour] as number);
        rows[to++] = (pixels[from + colour] as number) - above;
      }
  }
  return rows;
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32BE(data.length, 0);
  sizes.writeUInt32BE(crc32(named), 4);
  return Buffer.concat([sizes.subarray(0, 4), named, sizes.subarray(4)]);
}
