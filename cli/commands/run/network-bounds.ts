/** What a rollout may take of the network that its task allows, as its sandboxes know it. */

import type { ForwardBounds } from "../../../sandboxes/network/index.ts";
import type { Config } from "../../config.ts";

export function networkBounds({ network_connections, network_bytes }: Config["bounds"]): Partial<ForwardBounds> {
  return { connections: network_connections, bytes: network_bytes };
}
