/** Is this an address of the public internet? What a sandbox names must not lead into the operator's own network. */
import { BlockList, isIP } from "node:net";

/** IANA's special-purpose registry (RFC 6890): this host, private, shared, loopback, link-local, documentation, benchmarks, multicast, reserved. */
const special4: [string, number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // Not IANA's: Azure's machines reach their host's own services here.
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];
/** Within global unicast: Teredo and other protocols, documentation, 6to4, documentation again. */
const special6: [string, number][] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const special = new BlockList();
for (const [net, prefix] of special4) special.addSubnet(net, prefix, "ipv4");
for (const [net, prefix] of special6) special.addSubnet(net, prefix, "ipv6");

/** All that is not global unicast (2000::/3) is special: loopback, link-local, unique local, and IPv4 in another dress. */
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !special.check(address, "ipv4");
  // A zone (`fe80::1%eth0`) is there on link-local addresses only.
  return family === 6 && !address.includes("%") && globalUnicast.check(address, "ipv6") && !special.check(address, "ipv6");
}
