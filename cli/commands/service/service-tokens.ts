/** The tokens of the service's listener: the operator's, by the names of variables, or one that is made and kept. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../../../base/errors.ts";
import { isLoopback } from "../../../base/host/is-loopback.ts";
import { newKey } from "../../../base/schema/ids.ts";
import { replacePrivateFile } from "../../../proxy/store/index.ts";
import { type AccessRole, type AccessToken, roles } from "../../../service/index.ts";
import { terminal } from "../terminal.ts";
import { defaultTokenVariable } from "./token-words.ts";

/** `NAME`, with roles, a namespace or both behind it: `NAME=role,role@namespace`. By the variables of this process. */
export function tokensOf(words: string[] | undefined): AccessToken[] {
  const { env } = terminal();
  if (words === undefined) return env[defaultTokenVariable] ? [{ token: env[defaultTokenVariable], roles, namespace: null }] : [];
  const named = words.map((word) => tokenNamed(word, env));
  assertTold(named);
  return named.map(({ token }) => token);
}

type NamedToken = { name: string; token: AccessToken; isTold: boolean };

/** `isTold`: whose sets it sees stands there. Roles that reach beyond a namespace are given with one by name alone. */
function tokenNamed(word: string, env: Record<string, string | undefined>): NamedToken {
  const [, name = "", list, namespace] = /^([^=@]*)(?:=([^@]*))?(?:@(.*))?$/s.exec(word) ?? [];
  const token = env[name];
  if (!token) throw invalid(`--token-env names ${name || `"${word}"`}, which is not set: put the token into that variable`);
  if (namespace !== undefined && !/^(?:\*|[\w.-]{1,100})$/.test(namespace))
    throw invalid(
      `--token-env gives ${name} the namespace "${namespace}": give letters, digits, dots, dashes and underscores, or * for all`,
    );
  const isOfAll = namespace === undefined || namespace === "*";
  const usual = isOfAll ? roles : (["submit", "read"] as const);
  const given = list === undefined ? usual : list.split(",").map(roleNamed);
  return { name, token: { token, roles: given, namespace: isOfAll ? null : namespace }, isTold: namespace !== undefined };
}

/** Two trainers without a namespace could each cancel and forget what is the other's. */
function assertTold(named: readonly NamedToken[]): void {
  const [first, second] = named.filter(({ token, isTold }) => !isTold && token.roles.includes("submit"));
  if (first !== undefined && second !== undefined)
    throw invalid(
      `--token-env gives submit to ${first.name} and ${second.name}, and each would see all sets: say whose it sees, such as ${second.name}=submit,read@team-b, or ${second.name}@* for all`,
    );
  for (const [at, { name, token }] of named.entries()) {
    const twin = named.slice(0, at).find((other) => other.token.token === token.token);
    if (twin) throw invalid(`--token-env names ${twin.name} and ${name}, which hold one token: put a token of its own into each`);
  }
}

function invalid(message: string): AlidadeError {
  return new AlidadeError("config_invalid", message, { param: "token_env" });
}

function roleNamed(word: string): AccessRole {
  const role = roles.find((one) => one === word);
  if (role) return role;
  throw invalid(`--token-env knows no role "${word}"; there are: ${roles.join(", ")}`);
}

/** A token runs commands on this machine, so beyond it the operator must have chosen one. */
export function assertMayListen(host: string, given: readonly AccessToken[]): void {
  if (isLoopback(host) || given.length > 0) return;
  throw new AlidadeError("config_invalid", `--host is ${host}: to listen beyond loopback put a token into ${defaultTokenVariable}`, {
    param: "host",
  });
}

/**
 * Without a token of the operator's the one that was made at the first start; it is in private files only. The caller holds the
 * lock of the folder. An empty file, as a full disk leaves one, is no token: a request without any would have it.
 */
export async function accessOf(folder: string, given: AccessToken[]): Promise<{ tokens: AccessToken[]; token: string | null }> {
  if (given.length > 0) return { tokens: given, token: null };
  const file = join(folder, "token");
  const kept = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw new AlidadeError("store_error", `the token of the service cannot be read: ${error.message}`, { cause: error });
  });
  const token = kept.trim() || newKey();
  if (token !== kept) await replacePrivateFile(file, token);
  return { tokens: [{ token, roles, namespace: null }], token };
}
