/** An image of one small layer as registries have it, whose content is new each time, so that no engine has it. */
import { createHash, randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";

export type Blob = { type: string; bytes: Buffer; digest: string };
export type SmallImage = { layer: Blob; config: Blob; manifest: Blob };

const manifestType = "application/vnd.docker.distribution.manifest.v2+json";

export async function smallImage(): Promise<SmallImage> {
  const archive = pack();
  archive.entry({ name: "content" }, randomBytes(16).toString("hex"));
  archive.finalize();
  const tar = await buffer(archive);
  const layer = blobOf("application/vnd.docker.image.rootfs.diff.tar.gzip", gzipSync(tar));
  const rootfs = { type: "layers", diff_ids: [digestOf(tar)] };
  const config = blobOf(
    "application/vnd.docker.container.image.v1+json",
    JSON.stringify({
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: {},
      rootfs,
      history: [{ created_by: "test" }],
    }),
  );
  const described = ({ type, bytes, digest }: Blob) => ({ mediaType: type, size: bytes.length, digest });
  const text = JSON.stringify({ schemaVersion: 2, mediaType: manifestType, config: described(config), layers: [described(layer)] });
  return { layer, config, manifest: blobOf(manifestType, text) };
}

function blobOf(type: string, content: Buffer | string): Blob {
  const bytes = Buffer.from(content as string);
  return { type, bytes, digest: digestOf(bytes) };
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
