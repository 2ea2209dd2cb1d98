/** How names become addresses, and which of those may be connected to. */
export type Network = {
  /** The addresses of a name. Rejects, or gives none, where there are none. */
  resolve(host: string): Promise<string[]>;
  mayConnect(address: string): boolean;
};

/**
 * The addresses of a name, all of which may be connected to; null where one may not, because which one would be taken is
 * the name server's choice. Connect to one of these and never to the name: a second answer may be another one.
 */
export async function checkedAddresses(host: string, network: Network): Promise<string[] | null> {
  const addresses = await network.resolve(host);
  return addresses.every((address) => network.mayConnect(address)) ? addresses : null;
}
