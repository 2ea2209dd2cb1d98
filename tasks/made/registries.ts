/** Where published versions are had from: the registry that the user's own npm or pip is set to. Nothing of a package runs. */
import type { TreeFile } from "../../base/files/file-tree.ts";
import { packedVersion } from "../npm-source.ts";
import { sourceDistribution } from "./source-distribution.ts";

export type PackageRegistry = {
  name: "npm" | "pypi";
  title: string;
  /** What a name and a version look like: they stand in command lines and addresses. */
  packageName: RegExp;
  version: RegExp;
  /** Throws `pack_failed`. */
  tarball(name: string, version: string, signal: AbortSignal): Promise<Buffer>;
  /** What the packing writes is left out of both trees. */
  isPacking(file: TreeFile): boolean;
};

export const registries: readonly PackageRegistry[] = [
  {
    name: "npm",
    title: "an npm package",
    packageName: /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/,
    version: /^\d+\.\d+\.\d+[\w.+-]*$/,
    tarball: (name, version, signal) => packedVersion(name, version, { signal }),
    isPacking: () => false,
  },
  {
    name: "pypi",
    title: "a Python package with source distributions",
    packageName: /^[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/,
    version: /^\d[\w.!+-]*$/,
    tarball: sourceDistribution,
    isPacking: ({ path }) => path === "PKG-INFO" || /(?:^|\/)[^/]+\.egg-info\//.test(path),
  },
];
