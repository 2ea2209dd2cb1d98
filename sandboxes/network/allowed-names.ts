/** Names of hosts, and which of them a task's list allows. */
import { domainToASCII } from "node:url";
import type { NetworkAccess, NetworkRefusal } from "../../base/schema/network.ts";

export type Destination = { host: string; port: number };

const usualPorts = [80, 443];

/** The longest name of the Domain Name System. */
const maxName = 253;
const name = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/;

/** A host's name as it is compared: ASCII, small letters, no dot at the end. null for an address in any spelling, and for what is no name. */
export function hostName(text: string): string | null {
  if (text.length > maxName + 1) return null;
  const host = text.toLowerCase().replace(/\.$/, "");
  // The URL standard reads 127.1, 0x7f000001 and other spellings as the addresses that they are.
  if (host.length > maxName || !name.test(host) || domainToASCII(host) !== host) return null;
  return /^(?:0x[0-9a-f]*|[0-9]+)$/.test(host.slice(host.lastIndexOf(".") + 1)) ? null : host;
}

/** `host:port` as CONNECT has it; null where it is no name with a port. */
export function destinationOf(authority: string): Destination | null {
  const [, named = "", digits = ""] = /^([^:@/?#[\]\s]+):([0-9]{1,5})$/.exec(authority) ?? [];
  const host = hostName(named);
  const port = Number(digits);
  return host === null || port < 1 || port > 65_535 ? null : { host, port };
}

/** null: allowed. `*.example.org` is every name below example.org, and not example.org itself. */
export function refusalOf({ host, port }: Destination, access: NetworkAccess): NetworkRefusal | null {
  if (access === "none") return "name_not_allowed";
  if (access === "public") return usualPorts.includes(port) ? null : "port_not_allowed";
  const entries = access.allow.map((entry) => entry.split(":")).filter(([pattern = ""]) => matches(pattern, host));
  if (entries.length === 0) return "name_not_allowed";
  return entries.some(([, only]) => (only === undefined ? usualPorts.includes(port) : Number(only) === port)) ? null : "port_not_allowed";
}

function matches(pattern: string, host: string): boolean {
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) && host.length >= pattern.length : host === pattern;
}
