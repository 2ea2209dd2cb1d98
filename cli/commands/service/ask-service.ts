/** A service as the verbs that ask one find it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { tryJson } from "../../../base/schema/read-json.ts";
import { type ClientOptions, type ServiceAddress, ServiceClient } from "../../../service/index.ts";
import { say } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { caWords, defaultTokenVariable } from "./token-words.ts";

/** What a service writes of itself. */
const Kept = z.looseObject({ url: z.url(), token: z.string().nullable() });

export type AskFlags = { url?: string; ca?: string; tokenEnv: string; out: string };

export function addAskFlags(command: Command): Command {
  return command
    .option("--url <url>", "the service's address (default: that of <out>/service/service.json)")
    .option("--ca <file>", caWords)
    .option("--token-env <name>", "variable that holds a token with the role read", defaultTokenVariable)
    .option("-o, --out <folder>", "folder of the service", "runs");
}

/** `file`: a service.json, for what is not given. `flags`: what names another one, for errors. */
export type WhichService = { url?: string | undefined; file: string | null; ca?: string | undefined; tokenEnv: string; flags: string };

export function askedPlace({ url, ca, tokenEnv, out }: AskFlags): WhichService {
  const file = url === undefined ? join(out, "service", "service.json") : null;
  return { url, file, ca, tokenEnv, flags: "name the folder of a service by --out, or its address by --url" };
}

/** Its address is read again for each request: a service that is started again may have another one. Throws `config_invalid`, saying which flag names it. */
export async function clientAt(place: WhichService, options: Pick<ClientOptions, "patience">): Promise<ServiceClient> {
  const { ca } = await serviceAddress(place);
  const onAway = ({ message }: Error): void => say(`alidade: ${message}; waiting for it`);
  return ServiceClient.by(() => serviceAddress(place).catch(asAway), { ...options, ca, onAway });
}

/** It was there when the verb began: a folder that is gone for a moment is waited for as the service is. */
function asAway(error: unknown): never {
  throw new AlidadeError("not_found", messageOf(error), { cause: error, status: 503 });
}

/** Throws `config_invalid`, saying which flag names it. */
export async function serviceAddress({ url, file, ca, tokenEnv, flags }: WhichService): Promise<ServiceAddress> {
  const kept = file === null ? null : await readKept(file, flags);
  const named = terminal().env[tokenEnv];
  // A variable for another service may be set; the token of a service's own file is its own.
  const token = (tokenEnv === defaultTokenVariable ? (kept?.token ?? named) : (named ?? kept?.token)) ?? null;
  if (token === null)
    throw new AlidadeError("config_invalid", `--token-env names ${tokenEnv}, which is not set: put a token of the service into it`, {
      param: "token_env",
    });
  return { url: (url ?? kept?.url ?? "").replace(/\/+$/, ""), token, ca: ca === undefined ? null : await readCertificates(ca) };
}

async function readCertificates(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new AlidadeError("config_invalid", `cannot read --ca: ${messageOf(error)}`, { param: "ca" });
  });
  if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  throw new AlidadeError("config_invalid", `--ca is ${file}, which holds no certificate: give one in PEM form`, { param: "ca" });
}

async function readKept(file: string, flags: string): Promise<z.infer<typeof Kept>> {
  const text = await readFile(file, "utf8").catch(() => {
    throw new AlidadeError("config_invalid", `there is no ${file}: ${flags}`, { param: "out" });
  });
  const kept = Kept.safeParse(tryJson(text));
  if (kept.success) return kept.data;
  throw new AlidadeError("config_invalid", `${file} is no service.json, which has url and token: ${flags}`, { param: "out" });
}
