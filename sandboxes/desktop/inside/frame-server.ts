/**
 * Hands out pictures of the screen to an operator who watches. For each line on standard input it writes one PNG behind its
 * length. It has no connection to the screen's server, so whatever it is sent, no key is pressed and no pointer moves.
 */
import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { createInterface } from "node:readline";
import { Frames, pngOf } from "./frames.ts";
import { frameFile } from "./places.ts";

/** What the agent waits for goes first. */
const lowest = 19;

setPriority(lowest);
// It shares the memory of the desktop's service. If that is used up, the kernel ends this program and no page of the agent.
writeFileSync("/proc/self/oom_score_adj", "1000");
const frames = await Frames.open(frameFile);
for await (const _asked of createInterface({ input: process.stdin })) {
  const picture = await pngOf(await frames.now());
  const length = Buffer.alloc(4);
  length.writeUInt32BE(picture.length, 0);
  process.stdout.write(Buffer.concat([length, picture]));
}
process.exit(0);
