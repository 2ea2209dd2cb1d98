/** A service as the verbs that look at one find it, and what they ask of it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { Agent, fetch } from "undici";
import { AlidadeError, messageOf } from "../../errors.ts";
import { readJson } from "../../schema/read-json.ts";
import { terminal } from "../terminal.ts";
import { defaultTokenVariable } from "./service-tokens.ts";

export type AskFlags = { url?: string; ca?: string; tokenEnv: string; out: string };

/** Where it listens, a token of it, and the certificates that are trusted (PEM; null: those that Node trusts). */
export type ServiceAddress = { url: string; token: string; ca: string | null };

/** A service that is asked for its counts answers within this time, or is not well. */
const answerMs = 30_000;

export function addAskFlags(command: Command): Command {
  return command
    .option("--url <url>", "the service's address (default: that of <out>/service/service.json)")
    .option("--ca <file>", "PEM file of the certificate that an https address is trusted by (default: those that Node trusts)")
    .option("--token-env <name>", "variable that holds a token with the role read", defaultTokenVariable)
    .option("-o, --out <folder>", "folder of the service", "runs");
}

/** Throws `config_invalid`, saying which flag names it. A service that is started again may have another address. */
export async function serviceAddress(flags: AskFlags): Promise<ServiceAddress> {
  const kept = flags.url === undefined ? await readKept(join(flags.out, "service", "service.json")) : null;
  const url = (flags.url ?? kept?.url ?? "").replace(/\/+$/, "");
  const token = terminal().env[flags.tokenEnv] ?? kept?.token ?? null;
  if (token === null)
    throw new AlidadeError("config_invalid", `--token-env names ${flags.tokenEnv}, which is not set: put a token of the service into it`, {
      param: "token_env",
    });
  return { url, token, ca: flags.ca === undefined ? null : await readCertificates(flags.ca) };
}

async function readCertificates(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new AlidadeError("config_invalid", `cannot read --ca: ${messageOf(error)}`, { param: "ca" });
  });
  if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  throw new AlidadeError("config_invalid", `--ca is ${file}, which holds no certificate: give one in PEM form`, { param: "ca" });
}

async function readKept(file: string): Promise<{ url: string; token: string | null }> {
  const text = await readFile(file, "utf8").catch(() => {
    throw new AlidadeError("config_invalid", `there is no ${file}: name the folder of a service by --out, or its address by --url`, {
      param: "out",
    });
  });
  return readJson(text) as { url: string; token: string | null };
}

/** The text of its answer. Throws what it says; with a status of 502 or more where none answers, or it cannot answer now. */
export async function askService({ url, token, ca }: ServiceAddress, path: string, signal?: AbortSignal): Promise<string> {
  const late = AbortSignal.timeout(answerMs);
  const headers = { authorization: `Bearer ${token}` };
  await using scope = new AsyncDisposableStack();
  const dispatcher = scope.adopt(new Agent(ca === null ? {} : { connect: { ca } }), (agent) => agent.destroy());
  try {
    const response = await fetch(url + path, { headers, dispatcher, signal: signal ? AbortSignal.any([signal, late]) : late });
    const text = await response.text();
    // A service whose ledger is away says so there, with its reasons.
    if (response.ok || (path === "/health" && response.status === 503)) return text;
    const code = response.status === 401 ? "unauthorized" : "request_invalid";
    throw new AlidadeError(code, `${url}${path} answers ${response.status}: ${text.slice(0, 300)}`, { status: response.status });
  } catch (error) {
    if (error instanceof AlidadeError) throw error;
    signal?.throwIfAborted();
    const { cause } = error as { cause?: unknown };
    if (isDistrust(cause))
      throw new AlidadeError(
        "config_invalid",
        `--url is ${url}, whose certificate is not trusted: ${reasonOf(cause)}; name its CA's file by --ca`,
        {
          param: "ca",
        },
      );
    throw new AlidadeError("not_found", `no service answers at ${url}: ${messageOf(cause ?? error)}`, { param: "url", status: 503 });
  }
}

/** Without Node's advice on its own flags. */
const reasonOf = (cause: unknown): string => messageOf(cause).replace(/;.*/s, "");

/** OpenSSL's and Node's names of what is wrong with a certificate: waiting does not mend it. */
function isDistrust(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && /CERT|^UNABLE_TO_/.test(String(cause.code));
}
