/** Routes for nodes that share no disk and no bucket with the service: its place of trajectories, over HTTP. */
import { isBlobKey, isPackedAs } from "../../blobs/index.ts";
import { AlidadeError } from "../../errors.ts";
import { RequestBytes } from "../../proxy/http/request-bytes.ts";
import type { ServiceParts } from "../service-parts.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

/** Unpacked it would be longer than the longest text that Node can hold, so it could not be read again. */
const mostBytes = 256 * 1024 * 1024;

export function blobRoutes({ blobs }: Pick<ServiceParts, "blobs">): ServiceRoute[] {
  return [
    defineRoute({
      method: "put",
      path: "/blobs/:set/:rollout/:name",
      roles: ["node"],
      title:
        "Keeps a finished trajectory (its bytes are the body, at most 256 MiB) before a node finishes its rollout; the name ends with the hash of the bytes. 201 when it would survive a crash",
      status: 201,
      handle: async ({ param, context, signal }) => {
        const key = keyOf(param("set"), param("rollout"), param("name"));
        const pieces = await new RequestBytes(context.env.incoming).read({ limit: mostBytes });
        const bytes = Buffer.concat(pieces);
        if (!isPackedAs(key, bytes))
          throw new AlidadeError("request_invalid", `${key} names other bytes than the ${bytes.length} that came`, { param: "name" });
        // A node asks again while a bucket is away: what it no longer waits for would stay in memory beside the next one.
        await blobs.put(key, bytes, signal);
        return { key, bytes: bytes.length };
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

function keyOf(...parts: string[]): string {
  const key = parts.join("/");
  if (!isBlobKey(key)) throw new AlidadeError("request_invalid", `"${key.slice(0, 200)}" is no key of a blob`, { param: "name" });
  return key;
}
