/** The place of blobs that a person names. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { AlidadeError } from "../../base/errors.ts";
import type { Blobs, OwnBlobs } from "./blobs.ts";
import { FolderBlobs } from "./folder-blobs.ts";
import { S3Blobs } from "./s3-blobs.ts";
import { ServiceBlobs } from "./service-blobs.ts";

/** A place as for `openOwnBlobs`, or the address of a service. Throws `config_invalid`. */
export function openBlobs(word: string, env: Record<string, string | undefined>): Blobs {
  return /^https?:\/\//i.test(word) ? new ServiceBlobs(word, env) : openOwnBlobs(word, env);
}

/** A path, `file://` with one, or `s3://bucket/prefix`. Throws `config_invalid`. */
export function openOwnBlobs(word: string, env: Record<string, string | undefined>): OwnBlobs {
  if (word.startsWith("s3://")) return new S3Blobs(word, env);
  if (word.startsWith("file://")) return new FolderBlobs(fileURLToPath(word));
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word))
    throw new AlidadeError(
      "config_invalid",
      `--trajectories is ${word}: give a folder that the service and all nodes share, s3://bucket/prefix, or (at a node) the service's address`,
      {
        param: "trajectories",
      },
    );
  return new FolderBlobs(resolve(word));
}
