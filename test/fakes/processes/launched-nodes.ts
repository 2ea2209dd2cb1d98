/** Nodes that a launcher of `deploy/` starts: `alidade` on a path, what each is given, and which of them the service knows. */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "./cli.ts";
import type { Cluster } from "./cluster-at.ts";

export type LaunchedNodes = Awaited<ReturnType<typeof launchedNodes>>;

/** In a folder that is made. `env`: what the launcher's machines have; `args`: what it hands to each node. */
export async function launchedNodes(at: Cluster, folder: string) {
  await mkdir(folder);
  await writeFile(join(folder, "alidade"), `#!/bin/sh\nexec ${process.execPath} ${join(root, "cli/cli.ts")} "$@"\n`);
  await chmod(join(folder, "alidade"), 0o755);
  const out = join(folder, "out");
  const names = async (): Promise<string[]> => {
    const { nodes } = JSON.parse((await at.ask("GET", "/nodes")).text) as { nodes: { name: string }[] };
    return nodes.map(({ name }) => name).sort();
  };
  return {
    out,
    env: { PATH: `${folder}:${process.env.PATH}`, ALIDADE_OUT: out },
    args: ["--join", at.ledger, "--trajectories", join(at.place, "shared"), "-c", join(at.place, "run.yaml"), "--concurrency", "1"],
    names,
    /** Waits until these are the service's nodes. */
    areThere: (...wanted: string[]) => at.service.until(async () => (await names()).join() === wanted.join()),
  };
}
