/** What the rollouts of this process share, as the configuration has it. */

import { currentOwner } from "../../../base/host/owner.ts";
import { publicGrantOf } from "../../../rollouts/accepted/index.ts";
import type { RunSetup } from "../../../rollouts/index.ts";
import type { WarmPool } from "../../../sandboxes/index.ts";
import { DiskBudget } from "../../../sandboxes/index.ts";
import type { Config } from "../../config.ts";
import { networkBounds } from "./network-bounds.ts";

type OfThisProcess<Folder> = Pick<
  RunSetup,
  "run_id" | "backend" | "proxy" | "slots" | "guard" | "graders" | "onProgress" | "watcher" | "onLeftOut"
> & {
  folder: Folder;
  warm: WarmPool;
};

export async function setupOf<Folder>(
  config: Config,
  { warm, ...own }: OfThisProcess<Folder>,
): Promise<Omit<RunSetup, "folder"> & { folder: Folder }> {
  return {
    ...own,
    owner: await currentOwner(),
    ...(config.warm.sandboxes > 0 && { warm }),
    disk: new DiskBudget(own.backend, config.disk),
    max_null_share: config.max_null_share,
    network: { ...publicGrantOf(config), bounds: networkBounds(config.bounds) },
  };
}
