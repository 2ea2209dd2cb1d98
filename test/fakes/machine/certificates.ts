/** Certificates that openssl makes in a folder: `ca.pem`, and pairs that it signed. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a pair is for: its name, what clients call its owner by (`DNS:localhost,IP:127.0.0.1`), and how long it is valid. */
export type CertificateSpec = { name: string; altNames: string; usage: "server" | "client"; days?: number };

/** Writes `ca.pem`, and of each pair `<name>.pem` and `<name>-key.pem`. */
export function makeCertificates(folder: string, pairs: readonly CertificateSpec[]): void {
  const path = (name: string): string => join(folder, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
  const makeKey = (name: string) => openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path(`${name}-key.pem`));
  makeKey("ca");
  openssl("req", "-x509", "-new", "-key", path("ca-key.pem"), "-days", "2", "-subj", "/CN=ca", "-out", path("ca.pem"));
  for (const { name, altNames, usage, days = 2 } of pairs) {
    makeKey(name);
    openssl("req", "-new", "-key", path(`${name}-key.pem`), "-subj", `/CN=${name}`, "-out", path(`${name}.csr`));
    writeFileSync(path(`${name}.ext`), `subjectAltName=${altNames}\nextendedKeyUsage=${usage}Auth\n`);
    const by = ["-CA", path("ca.pem"), "-CAkey", path("ca-key.pem"), "-CAcreateserial", "-extfile", path(`${name}.ext`)];
    openssl("x509", "-req", "-in", path(`${name}.csr`), ...by, "-days", String(days), "-out", path(`${name}.pem`));
  }
}
