import assert from "node:assert/strict";
import { test } from "node:test";
import { inflateSync } from "node:zlib";
import { encodePng } from "../../../sandboxes/desktop/inside/png.ts";

test("a picture holds each pixel as red, green and blue, and equal pixels are equal bytes", async () => {
  const [width, height] = [7, 5];
  const pixels = Buffer.from(Array.from({ length: width * height * 4 }, (_, index) => (index * 73) % 256));
  const png = await encodePng(width, height, pixels);
  assert.deepEqual(await encodePng(width, height, pixels), png);
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [width, height]);
  const rows = inflateSync(png.subarray(33 + 8, 33 + 8 + png.readUInt32BE(33)));
  const stride = width * 3 + 1;
  const plain = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y++)
    for (let at = 0; at < width * 3; at++) {
      const above = y === 0 ? 0 : (plain[(y - 1) * width * 3 + at] as number);
      plain[y * width * 3 + at] = (rows[y * stride + 1 + at] as number) + above;
    }
  const wanted = Array.from({ length: width * height }, (_, index) => [2, 1, 0].map((colour) => pixels[index * 4 + colour])).flat();
  assert.deepEqual([...plain], wanted);
});
