import { posix } from "node:path";
import { z } from "zod";

export const AbsolutePath = z
  .string()
  .refine((path) => path.startsWith("/") && posix.normalize(path) === path && (path === "/" || !path.endsWith("/")), {
    message: "an absolute, normal path without a slash at its end",
  });
