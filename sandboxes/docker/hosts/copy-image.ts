/** An image from one engine to another, through this process: the same content id, and no registry is asked. */
import type { Readable } from "node:stream";
import { addAbortSignal } from "node:stream";
import { text } from "node:stream/consumers";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError } from "../../../base/errors.ts";
import { imageAt } from "../images/image-at.ts";

/** `image`: its name, which it keeps. Throws `sandbox_unavailable`. */
export async function copyImage(from: Docker, to: Docker, image: string, signal: AbortSignal): Promise<void> {
  try {
    const archive = addAbortSignal(signal, (await imageAt(from, image).get()) as Readable);
    const answer = await text((await to.loadImage(archive, { quiet: true })) as Readable);
    // The engine's complaints come in an answer that says "OK".
    const complaint = /"error":\s*"([^"]*)"/.exec(answer)?.[1];
    if (complaint !== undefined) throw new AlidadeError("sandbox_unavailable", complaint);
  } catch (error) {
    signal.throwIfAborted();
    throw asAlidadeError(error, "sandbox_unavailable", `The image ${image} could not be copied from one engine to another: `);
  }
}
