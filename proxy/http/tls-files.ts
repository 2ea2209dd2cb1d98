/** The file pair of a listener that speaks HTTPS. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { AlidadeError, messageOf } from "../../base/errors.ts";

/** PEM: the certificate, with those between it and its root behind it, and its private key. */
export type TlsPair = { cert: Buffer; key: Buffer };

/** undefined: no TLS. Throws `config_invalid` naming the file at fault and what is wrong with it. */
export async function readTlsFiles(files: { cert?: string | undefined; key?: string | undefined }): Promise<TlsPair | undefined> {
  if (files.cert === undefined && files.key === undefined) return undefined;
  const [cert, key] = [await readPart("cert", files.cert), await readPart("key", files.key)];
  assertPair({ cert, key }, `tls.cert is ${files.cert}`, `tls.key is ${files.key}`);
  return { cert, key };
}

/** A name or an address that clients call the certificate's owner by; null where it names none. Of a wildcard none can be made. */
export function certifiedName(cert: Buffer): string | null {
  const names = new X509Certificate(cert).subjectAltName ?? "";
  return /(?:^|, )(?:DNS|IP Address):([\w.:-]+)(?=,|$)/.exec(names)?.[1] ?? null;
}

async function readPart(name: "cert" | "key", path: string | undefined): Promise<Buffer> {
  if (path === undefined) throw refuse(name, `tls.${name} is missing: tls.cert and tls.key are a pair`);
  return readFile(path).catch((error: unknown) => {
    throw refuse(name, `cannot read tls.${name}: ${messageOf(error)}`);
  });
}

/** A client would see only that the connection ends, so the operator is told here. */
function assertPair({ cert, key }: TlsPair, certIs: string, keyIs: string): void {
  const certificate = parsed(() => new X509Certificate(cert));
  if (certificate === null) throw refuse("cert", `${certIs}, which holds no certificate: give one in PEM form`);
  if (certificate.validToDate < new Date()) throw refuse("cert", `${certIs}, which was valid until ${certificate.validTo}: renew it`);
  const privateKey = parsed(() => createPrivateKey(key));
  if (privateKey === null) throw refuse("key", `${keyIs}, which holds no private key: give one in PEM form without a passphrase`);
  if (!certificate.checkPrivateKey(privateKey)) throw refuse("key", `${keyIs}, which is not the key of tls.cert: give the two of one pair`);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw refuse("cert", `${certIs}, which serves no TLS with its key: ${messageOf(error)}`);
  }
}

function parsed<T>(parse: () => T): T | null {
  try {
    return parse();
  } catch {
    return null;
  }
}

const refuse = (name: "cert" | "key", message: string): AlidadeError =>
  new AlidadeError("config_invalid", message, { param: `tls.${name}` });
