/** How often an operator's look takes a picture, and what happens if the program in the service breaks its protocol. */
import assert from "node:assert/strict";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { DesktopWatch } from "../../../sandboxes/desktop/desktop-watch.ts";
import { pngOf } from "../../fakes/records/png.ts";

/** Writes the length and then the picture, as the program in the service does. */
function framed(picture: Buffer, length = picture.length): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(length, 0);
  return Buffer.concat([head, picture]);
}

const red = pngOf(4, 3, [200, 0, 0]);
const blue = pngOf(4, 3, [0, 0, 200]);

/** Makes a sandbox whose program answers each line with the next of `answers`, and ends at null. */
function sandboxWith(answers: (Buffer | null)[]) {
  const seen = { starts: [] as string[][], lines: 0, streams: [] as Duplex[] };
  const start = async (service: string, argv: string[]): Promise<Duplex> => {
    seen.starts.push([service, ...argv]);
    const [ours, theirs] = duplexPair();
    seen.streams.push(ours);
    theirs.on("error", () => undefined);
    theirs.on("data", (piece: Buffer) => {
      for (const byte of piece) {
        assert.equal(byte, 0x0a, "nothing but line ends is sent: no key, no point");
        seen.lines++;
        const answer = answers.shift() ?? null;
        if (answer === null) theirs.end();
        else theirs.write(answer);
      }
    });
    return ours;
  };
  return { seen, sandbox: { start } };
}

test("one program takes one picture a second for any number of viewers", async () => {
  let now = 0;
  const { seen, sandbox } = sandboxWith([framed(red), framed(blue)]);
  await using watch = new DesktopWatch(sandbox, "screen", () => now);
  const looks = await Promise.all(Array.from({ length: 50 }, () => watch.frame()));
  assert.ok(looks.every((picture) => picture.equals(red)));
  now = 999;
  assert.ok((await watch.frame()).equals(red));
  assert.deepEqual([seen.starts.length, seen.lines], [1, 1]);
  now = 1_000;
  assert.ok((await watch.frame()).equals(blue));
  assert.deepEqual([seen.starts.length, seen.lines], [1, 2]);
  assert.match(seen.starts[0]?.join(" ") ?? "", /^screen \/opt\/alidade\/door\/node .*frame-server/);
});

const faults: [string, Buffer | null, RegExp][] = [
  ["ends", null, /its program ended/],
  ["names more bytes than any screen has", framed(red, 0xffffffff), /4294967295 bytes is larger than any screen/],
  ["sends a picture of more points than any screen has", framed(withSize(red, 60_000, 60_000)), /60000×60000 is larger than any screen/],
  ["sends no picture", framed(Buffer.from("<svg onload=alert(1)>")), /no picture/],
  ["sends two", Buffer.concat([framed(red), framed(blue)]), /unasked/],
];

for (const [what, answer, message] of faults)
  test(`a program that ${what} fails one look, and the next look starts it anew`, async () => {
    let now = 0;
    const { seen, sandbox } = sandboxWith([answer, ...(what === "sends two" ? [] : [framed(blue)]), framed(blue)]);
    await using watch = new DesktopWatch(sandbox, "screen", () => now);
    if (what === "sends two") {
      await watch.frame();
      now += 1_000;
    }
    await assert.rejects(watch.frame(), (error: Error) => message.test(error.message) && /service "screen"/.test(error.message));
    assert.ok(seen.streams[0]?.destroyed);
    now += 1_000;
    assert.ok((await watch.frame()).equals(blue));
    assert.equal(seen.starts.length, 2);
  });

test("the program ends with its rollout, and later looks are refused", async () => {
  const { seen, sandbox } = sandboxWith([framed(red)]);
  const watch = new DesktopWatch(sandbox, "screen");
  await watch.frame();
  await watch[Symbol.asyncDispose]();
  assert.ok(seen.streams[0]?.destroyed);
  const late = new DesktopWatch(sandbox, "screen");
  await late[Symbol.asyncDispose]();
  await assert.rejects(late.frame(), /the rollout's sandbox is gone/);
  assert.equal(seen.starts.length, 1);
});

/** Copies the picture with another size in its header. */
function withSize(png: Buffer, width: number, height: number): Buffer {
  const copy = Buffer.from(png);
  copy.writeUInt32BE(width, 16);
  copy.writeUInt32BE(height, 20);
  return copy;
}
