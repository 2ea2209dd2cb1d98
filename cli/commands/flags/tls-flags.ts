/** Flags of the verbs that listen: the file pair for HTTPS. */
import type { Command } from "commander";

export type TlsFlags = { tlsCert?: string; tlsKey?: string };

export function addTlsFlags(command: Command): Command {
  return command
    .option("--tls-cert <file>", "listen with HTTPS: the certificate and those between it and its root, as PEM")
    .option("--tls-key <file>", "its private key, as PEM without a passphrase");
}

/** As keys of the configuration. */
export function tlsOf({ tlsCert: cert, tlsKey: key }: TlsFlags): Record<string, unknown> {
  return { tls: { cert, key } };
}
