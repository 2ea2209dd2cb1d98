/**
 * The name of an image. It becomes part of a path at the container engine and a word of a Dockerfile, so nothing that is not
 * a name may come that far.
 */
import { z } from "zod";

export type ImageParts = {
  /** The registry; `docker.io` where the name has none. */
  host: string;
  /** Without tag and digest, as it was written. */
  repository: string;
  /** A tag or a digest (`sha256:…`); `latest` where the name has neither. */
  tag: string;
};

/** Docker refuses longer paths. */
const longestName = 500;

const whole = /^([\w.:/-]+?)(?::([\w][\w.-]{0,127}))?(?:@([a-z0-9]+:[0-9a-f]{32,}))?$/;
const label = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?";
const registry = new RegExp(`^${label}(?:\\.${label})*(?::[0-9]{1,5})?$`, "i");
const pathPart = /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/;

/** `[host[:port]/]path[:tag][@digest]`, as the engine reads it; null for what is no such name. */
export function imageParts(name: string): ImageParts | null {
  if (name.length > longestName) return null;
  const [, repository = "", tag, digest] = whole.exec(name) ?? [];
  const [first = "", ...others] = repository.split("/");
  const hasHost = others.length > 0 && (/[.:]/.test(first) || first === "localhost");
  if (hasHost && !registry.test(first)) return null;
  const path = hasHost ? others : [first, ...others];
  if (!path.every((part) => pathPart.test(part))) return null;
  return { host: hasHost ? first : "docker.io", repository, tag: digest ?? tag ?? "latest" };
}

export const wantedImageName = "a name of an image in small letters, such as debian:12 or ghcr.io/owner/name:1.2";

export const ImageName = z.string().refine((name) => imageParts(name) !== null, { message: wantedImageName });
