/** The parts of an image's name, as the engine reads them: `[host[:port]/]path[:tag][@digest]`. */
import { AlidadeError } from "../../errors.ts";

export type ImageName = {
  /** The registry; `docker.io` where the name has none. */
  host: string;
  /** Without tag and digest, as it was written. */
  repository: string;
  /** A tag or a digest (`sha256:…`); `latest` where the name has neither. */
  tag: string;
};

/** Docker refuses longer paths. */
const longestName = 500;

/** Throws `sandbox_unavailable` for what is no name of an image. */
export function parseImageName(name: string): ImageName {
  const match = /^([\w.:/-]+?)(?::([\w][\w.-]{0,127}))?(?:@([a-z0-9]+:[0-9a-f]{32,}))?$/.exec(name.length > longestName ? "" : name);
  const repository = match?.[1] ?? "";
  const [first = "", ...others] = repository.split("/");
  const hasHost = others.length > 0 && (/^\w[\w-]*[.:]/.test(first) || first === "localhost");
  const path = hasHost ? others : [first, ...others];
  if (!path.every((part) => /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/.test(part)))
    throw new AlidadeError(
      "sandbox_unavailable",
      `environment.image is ${JSON.stringify(name.slice(0, 200))}, which is no name of an image: write it as host/path:tag.`,
      { param: "environment.image" },
    );
  return { host: hasHost ? first : "docker.io", repository, tag: match?.[3] ?? match?.[2] ?? "latest" };
}
