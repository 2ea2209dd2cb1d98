/** The address of this machine on the bridge of its Docker engine. */
import { dockerClient } from "../../../sandboxes/docker/client.ts";

/** A bridge that the engine has just made names no gateway until the engine's next start: it is the first address. undefined: there is none. */
export async function bridgeAddress(): Promise<string | undefined> {
  const bridge = (await dockerClient()).getNetwork("bridge");
  const { IPAM } = (await bridge.inspect()) as { IPAM: { Config: { Gateway?: string; Subnet: string }[] } };
  const [network] = IPAM.Config;
  return network?.Gateway ?? network?.Subnet.replace(/\.0\/\d+$/, ".1");
}
