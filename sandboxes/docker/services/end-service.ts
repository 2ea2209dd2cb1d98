/** Asks a service to end, and ends it. */
import { readFile } from "node:fs/promises";
import { constants } from "node:os";
import type Docker from "dockerode";
import { z } from "zod";
import { statusOf } from "../client.ts";
import { localPid } from "../container-door.ts";

/** How long a service may write down what it holds after it was asked to end. */
const endSeconds = 10;

/**
 * Sends the stop signal of the image (SIGTERM by default), and kills after `endSeconds`; at once where nothing would notice
 * the signal. A service that has ended is no error.
 */
export async function endService(docker: Docker, container: Docker.Container): Promise<void> {
  const t = (await isDeaf(docker, container)) ? 0 : endSeconds;
  try {
    await container.stop({ t });
  } catch (error) {
    if (statusOf(error) !== 304) throw error;
  }
}

/** Not in the types of dockerode. */
const WithStopSignal = z.looseObject({ StopSignal: z.string().optional() });

/**
 * Does the stop signal neither end the service nor reach a handler of it? The kernel drops a signal without a handler for the first
 * process of a container, which it would end anywhere else. False where this machine cannot see the process.
 */
export async function isDeaf(docker: Docker, container: Docker.Container): Promise<boolean> {
  const number = signalNumber(WithStopSignal.parse((await container.inspect()).Config).StopSignal);
  const pid = await localPid(docker, container.id);
  if (number === null || pid === null) return false;
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  // A blocked one may be waited for (sigwait, signalfd). An ignored one is the service's own wish to go on.
  return /^SigCgt:/m.test(status) && !["SigCgt", "SigBlk", "SigIgn"].some((mask) => holds(status, mask, number));
}

/** A name, with or without SIG, or a number; null for what this machine does not know. */
function signalNumber(name = "SIGTERM"): number | null {
  if (/^\d+$/.test(name)) return Number(name);
  const named: Record<string, number> = constants.signals;
  return named[name.startsWith("SIG") ? name : `SIG${name}`] ?? null;
}

function holds(status: string, mask: string, signal: number): boolean {
  const bits = new RegExp(`^${mask}:\\s*([0-9a-f]+)$`, "m").exec(status)?.[1] ?? "0";
  return ((BigInt(`0x${bits}`) >> BigInt(signal - 1)) & 1n) === 1n;
}
