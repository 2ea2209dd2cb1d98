/** Asks a service to end, and ends it. */
import type Docker from "dockerode";
import { statusOf } from "../client.ts";

/** How long a service may write down what it holds after it was asked to end. */
const endSeconds = 10;

/** Sends the stop signal of the image (SIGTERM by default), and kills after `endSeconds`. A service that has ended is no error. */
export async function endService(container: Docker.Container): Promise<void> {
  try {
    await container.stop({ t: endSeconds });
  } catch (error) {
    if (statusOf(error) !== 304) throw error;
  }
}
