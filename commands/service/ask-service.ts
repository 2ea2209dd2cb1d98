/** A service as the verbs that look at one find it, and what they ask of it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { AlidadeError, messageOf } from "../../errors.ts";
import { readJson } from "../../schema/read-json.ts";
import { terminal } from "../terminal.ts";
import { defaultTokenVariable } from "./service-tokens.ts";

export type AskFlags = { url?: string; tokenEnv: string; out: string };

/** Where it listens, and a token of it. */
export type ServiceAddress = { url: string; token: string };

/** A service that is asked for its counts answers within this time, or is not well. */
const answerMs = 30_000;

export function addAskFlags(command: Command): Command {
  return command
    .option("--url <url>", "the service's address (default: that of <out>/service/service.json)")
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
  return { url, token };
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
export async function askService({ url, token }: ServiceAddress, path: string, signal?: AbortSignal): Promise<string> {
  const late = AbortSignal.timeout(answerMs);
  const headers = { authorization: `Bearer ${token}` };
  try {
    const response = await fetch(url + path, { headers, signal: signal ? AbortSignal.any([signal, late]) : late });
    const text = await response.text();
    if (response.ok) return text;
    const code = response.status === 401 ? "unauthorized" : "request_invalid";
    throw new AlidadeError(code, `${url}${path} answers ${response.status}: ${text.slice(0, 300)}`, { status: response.status });
  } catch (error) {
    if (error instanceof AlidadeError) throw error;
    signal?.throwIfAborted();
    const { cause } = error as { cause?: unknown };
    throw new AlidadeError("not_found", `no service answers at ${url}: ${messageOf(cause ?? error)}`, { param: "url", status: 503 });
  }
}
