/** Why a connection out of a sandbox was refused, or came to nothing. */
import type { Meaning } from "./meaning.ts";

export const refusals = {
  not_a_name: { what: "the request names an address, or no host", cure: "name the host" },
  name_not_allowed: { what: "the name is not in the task's list", cure: "add it to `allow`" },
  port_not_allowed: { what: "the port is neither 80 nor 443, and the list does not name it", cure: "add `name:port` to `allow`" },
  name_unknown: { what: "the name has no address", cure: null },
  address_not_public: {
    what: "an address of the name is private, local, reserved or this machine's own",
    cure: "a sandbox reaches public addresses only",
  },
  engine_address: { what: "the name or an address of it is an inference server's", cure: "call the model through the proxy's own door" },
  connect_failed: { what: "no connection to the address came about, or its server broke it off", cure: null },
  server_name_differs: { what: "the TLS handshake names another server than the request, or none", cure: null },
  server_name_hidden: {
    what: "the TLS handshake has an encrypted part that may name another server",
    cure: "switch Encrypted Client Hello off in the client",
  },
  host_differs: { what: "the `Host` header names another host than the request", cure: null },
  not_understood: { what: "the bytes are neither a TLS handshake nor an HTTP/1.1 request of bounded size", cure: null },
  too_slow: { what: "the request or the handshake did not arrive in time", cure: null },
  too_many_connections: { what: "as many connections are open as may be", cure: null },
  bytes_spent: { what: "the rollout's bytes are spent", cure: "raise `bounds.network_bytes`" },
} as const satisfies Record<string, Meaning>;
