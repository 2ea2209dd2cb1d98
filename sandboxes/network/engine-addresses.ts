/** Where the engines are: names and addresses that no sandbox reaches but through the proxy, which keeps the record. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";

/** An engine that moves is found at its new address within this time; its name is refused at once. */
const keptMs = 30_000;

/** Looks the addresses up anew when they are old. `urls`: of the engines that there are now. */
export function engineAddresses(urls: () => readonly string[]): () => Promise<ReadonlySet<string>> {
  let known: { hosts: string; found: Promise<ReadonlySet<string>>; at: number } | null = null;
  return () => {
    const hosts = urls().flatMap((url) => URL.parse(url)?.hostname.replace(/^\[(.*)\]$/, "$1") ?? []);
    const key = hosts.join(" ");
    if (known === null || known.hosts !== key || performance.now() - known.at > keptMs)
      known = { hosts: key, found: addressesOf(hosts), at: performance.now() };
    return known.found;
  };
}

async function addressesOf(hosts: string[]): Promise<ReadonlySet<string>> {
  const found = await Promise.allSettled(hosts.filter((host) => isIP(host) === 0).map((host) => lookup(host, { all: true })));
  return new Set([...hosts, ...found.flatMap((one) => (one.status === "fulfilled" ? one.value.map(({ address }) => address) : []))]);
}
