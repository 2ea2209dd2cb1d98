/** Names and addresses of the public internet, for clients that are not trusted. */
import { Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import type { Network } from "../../base/wire/network.ts";
import { isPublicAddress } from "../../base/wire/public-address.ts";

/**
 * Asks name servers over sockets. The system's own look-up would take a thread of the few that also read files, for
 * seconds where a client chooses a name whose server is silent; and names of this machine's hosts file are no public ones.
 */
const resolver = new Resolver({ timeout: 3_000, tries: 2 });

export const publicInternet: Network = {
  resolve: async (host) => {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  },
  mayConnect: (address) => isPublicAddress(address) && !isOwnAddress(address),
};

/** What listens on this machine may listen for its users only. */
function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some((own) => own.address === address));
}
