/** Tasks that need Node get the one that runs Alidade, mounted read-only, whatever image they run in. */

import type { Environment } from "../base/schema/task.ts";
import { nodeInside, nodeMount } from "../sandboxes/index.ts";

/** What a task file writes in the place of a host folder to ask for it. */
export const nodeWord = "alidade:node";

/** What a shell on Debian has; the mounted Node stands before it. */
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export async function withNode(environment: Environment): Promise<Environment> {
  return {
    ...environment,
    mounts: { ...environment.mounts, [nodeInside]: await nodeMount() },
    env: { PATH: `${nodeInside}/bin:${path}`, ...environment.env },
  };
}
