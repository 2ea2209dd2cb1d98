/**
 * Sends pictures of the screen to an operator. For each line on standard input, it writes the length of a PNG and then the PNG.
 * It has no connection to the screen's server, so no input can press a key or move the pointer.
 */
import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { createInterface } from "node:readline";
import { Frames, pngOf } from "./frames.ts";
import { frameFile } from "./places.ts";

/** The lowest priority, so that the agent's programs run first. */
const lowest = 19;

setPriority(lowest);
// Shares the memory of the desktop's service. If it is used up, the kernel ends this program, and not a page of the agent.
writeFileSync("/proc/self/oom_score_adj", "1000");
const frames = await Frames.open(frameFile);
for await (const _asked of createInterface({ input: process.stdin })) {
  const picture = await pngOf(await frames.now());
  const length = Buffer.alloc(4);
  length.writeUInt32BE(picture.length, 0);
  process.stdout.write(Buffer.concat([length, picture]));
}
process.exit(0);
