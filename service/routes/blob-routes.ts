/** Routes for nodes that share no disk and no bucket with the service: its place of trajectories, over HTTP. */

import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { RequestBytes } from "../../proxy/http/index.ts";
import { isBlobKey, isLogCopyKey, longestLogCopy, piecesOf } from "../blobs/index.ts";
import type { ServiceParts } from "../service-parts.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

/** Unpacked it would be longer than the longest text that Node can hold, so it could not be read again. */
const mostBytes = 256 * 1024 * 1024;

/** Packing shortens a part of a log, JSON of token ids and text, about by this factor. */
const packedShare = 8;

export function blobRoutes({ blobs }: Pick<ServiceParts, "blobs">): ServiceRoute[] {
  return [
    defineRoute({
      method: "put",
      path: "/blobs/:set/:rollout/:name",
      roles: ["node"],
      title:
        "Keeps a finished trajectory (its bytes are the body, at most 256 MiB) before a node finishes its rollout; the name ends with the hash of the bytes. 201 when it would survive a crash",
      status: 201,
      heldBytes: 4 * 1024 * 1024,
      handle: async ({ param, context, signal }) => {
        const key = keyOf(param("set"), param("rollout"), param("name"));
        return keepBody(blobs, key, context.env.incoming, signal, (pieces) => piecesOf(key, pieces));
      },
    }),
    defineRoute({
      method: "put",
      path: "/blobs/:set/:rollout/logs/:name",
      roles: ["node"],
      title:
        "Keeps a part of the log of a session that a node is at work on (its bytes are the body, at most 256 MiB), for the node that takes its rollout if this one dies",
      status: 201,
      heldBytes: 4 * 1024 * 1024,
      handle: async ({ param, context, signal }) => {
        return keepBody(blobs, logKeyOf(param), context.env.incoming, signal);
      },
    }),
    defineRoute({
      method: "get",
      path: "/blobs/:set/:rollout/logs/:name",
      roles: ["node"],
      title: "A part of such a log; 404 behind the last one. Finished trajectories are not read here",
      answers: ["application/octet-stream"],
      heldBytes: longestLogCopy / packedShare,
      handle: async ({ param, context }) => {
        const key = logKeyOf(param);
        const found = await blobs.get(key);
        if (found === null) throw new AlidadeError("not_found", `there is no ${key}`);
        return context.body(new Uint8Array(found), 200, { "content-type": "application/octet-stream" });
      },
    }),
    defineRoute({
      method: "delete",
      path: "/blobs/:set/:rollout/logs/:attempt",
      roles: ["node"],
      title: "Removes the copies of a rollout's logs of this attempt (a number) and of those before it, once they are needed no more",
      handle: async ({ param, signal }) => {
        const name = `${param("set")}/${param("rollout")}`;
        const attempt = param("attempt");
        if (!isLogCopyKey(`${name}/logs/${attempt}-1.json.zst`)) throw noKey(`${name}/logs/${attempt}`);
        await blobs.removeLogs(name, Number(attempt), signal);
        return { name };
      },
    }),
    defineRoute({
      method: "get",
      path: "/blobs/ledger.id",
      roles: ["node"],
      title: "The ledger whose trajectories are kept here: a node compares it with its own",
      answers: ["text/plain"],
      handle: async ({ context }) => {
        const found = await blobs.get("ledger.id");
        if (found === null) throw new AlidadeError("not_found", "the place of trajectories has no ledger.id");
        return context.text(found.toString("utf8"));
      },
    }),
  ];
}

/** Puts the body of a request below the key. `checked` may refuse it by what it reads. */
async function keepBody(
  blobs: Pick<ServiceParts["blobs"], "putPieces">,
  key: string,
  incoming: ConstructorParameters<typeof RequestBytes>[0],
  signal: AbortSignal,
  checked: (pieces: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array> = (pieces) => pieces,
): Promise<{ key: string; bytes: number }> {
  const body = new RequestBytes(incoming);
  // A node asks again while a bucket is away, so what it no longer waits for is let go.
  await blobs.putPieces(key, checked(sent(body.pieces({ limit: mostBytes }))), signal);
  return { key, bytes: body.size };
}

/** A sender that leaves in the middle is no fault of the place. */
async function* sent(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* pieces;
  } catch (error) {
    throw asAlidadeError(error, "cancelled", "the node left in the middle of a trajectory: ");
  }
}

function keyOf(...parts: string[]): string {
  const key = parts.join("/");
  if (!isBlobKey(key)) throw noKey(key);
  return key;
}

function logKeyOf(param: (name: string) => string): string {
  const key = `${param("set")}/${param("rollout")}/logs/${param("name")}`;
  if (!isLogCopyKey(key)) throw noKey(key);
  return key;
}

function noKey(key: string): AlidadeError {
  return new AlidadeError("request_invalid", `"${key.slice(0, 200)}" is no key of a blob`, { param: "name" });
}
