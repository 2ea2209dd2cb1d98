/**
 * The place of trajectories that a service and its nodes share. A node that writes into another one of the same name would
 * finish rollouts whose trajectories no service can read, so the place has a blob that names its ledger.
 */

import { AlidadeError, type ErrorCode } from "../../../base/errors.ts";
import { type Blobs, type OwnBlobs, openBlobs, openOwnBlobs } from "../../../service/blobs/index.ts";
import { terminal } from "../terminal.ts";

const mark = "ledger.id";

/** Opens the place where the service keeps trajectories. Throws `config_invalid` if another ledger uses it. */
export async function ownBlobs(word: string, ledger: string): Promise<OwnBlobs> {
  if (/^https?:/i.test(word))
    throw new AlidadeError(
      "config_invalid",
      `--trajectories is ${word}: a service keeps them itself, so give a folder or s3://bucket/prefix; nodes may name the service's address`,
      { param: "trajectories" },
    );
  const blobs = openOwnBlobs(word, terminal().env);
  if ((await blobs.get(mark)) === null) await blobs.put(mark, Buffer.from(ledger));
  return joined(blobs, ledger);
}

/** For a node. Throws `not_found` where no service was started there, and `config_invalid` where it is that of another one. */
export async function joinedBlobs(word: string, ledger: string): Promise<Blobs> {
  return joined(openBlobs(word, terminal().env), ledger);
}

async function joined<Place extends Blobs>(blobs: Place, ledger: string): Promise<Place> {
  const refuse = (why: string, code: ErrorCode = "config_invalid") =>
    new AlidadeError(code, `--trajectories is ${blobs.place}: ${why}`, { param: "trajectories" });
  const found = (await blobs.get(mark))?.toString("utf8");
  if (found === undefined)
    throw refuse(
      "it is not the place of a service that was started: name the one of `alidade service`, which both must reach",
      "not_found",
    );
  if (found !== ledger) throw refuse(`it has trajectories of the ledger ${found.slice(0, 40)}, and this is ${ledger}: name another one`);
  return blobs;
}
