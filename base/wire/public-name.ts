/** May this name lead to the public internet? What it leads to is looked at again when it is connected to. */

/** Ends of names that never do: RFC 6761, 6762 and 8375, ICANN's `internal`, and what hosts files have for loopback. */
const special = ["localhost", "localdomain", "local", "internal", "home.arpa", "invalid", "test"];

/** `host` as `URL` gives it: small letters, and nothing encoded. */
export function isPublicName(host: string): boolean {
  const name = host.replace(/\.+$/, "");
  // A name without a dot is one of this machine or of its own network.
  return name.includes(".") && !special.some((end) => name === end || name.endsWith(`.${end}`));
}
