/** The tokens of the service's listener: the operator's, by the names of variables, or one that is made and kept. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../../errors.ts";
import { isLoopback } from "../../host/is-loopback.ts";
import { newKey } from "../../schema/ids.ts";
import { type AccessRole, type AccessToken, roles } from "../../service/index.ts";
import { replacePrivateFile } from "../../store/index.ts";
import { terminal } from "../terminal.ts";

export const defaultTokenVariable = "ALIDADE_SERVICE_TOKEN";

/** `NAME` or `NAME=role,role`, by the variables of this process. */
export function tokensOf(words: string[] | undefined): AccessToken[] {
  const { env } = terminal();
  if (words === undefined) return env[defaultTokenVariable] ? [{ token: env[defaultTokenVariable], roles }] : [];
  return words.map((word) => {
    const [name = "", list] = word.split("=");
    const token = env[name];
    if (!token)
      throw new AlidadeError("config_invalid", `--token-env names ${name}, which is not set: put the token into that variable`, {
        param: "token_env",
      });
    return { token, roles: list === undefined ? roles : list.split(",").map(roleNamed) };
  });
}

function roleNamed(word: string): AccessRole {
  const role = roles.find((one) => one === word);
  if (role) return role;
  throw new AlidadeError("config_invalid", `--token-env knows no role "${word}"; there are: ${roles.join(", ")}`, { param: "token_env" });
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
  return { tokens: [{ token, roles }], token };
}
