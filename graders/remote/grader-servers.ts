/** The servers that an operator lets tasks ask for rewards, and their keys. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { keepSecret } from "../../base/wire/secrets.ts";

/** A server that tasks may ask. `key`: sent to it alone, as a bearer token. */
export type GraderServer = { origin: string; key: string | null };

const Origin = z.string().refine(isOrigin, {
  error: "give the server's origin, such as http://127.0.0.1:8100: http(s), without a path, a user or a password",
});

/** A word is the origin of a server that wants no key. */
export const NamedGraderServer = z.union([
  Origin.transform((url): NamedGraderServer => ({ url })),
  z.strictObject({
    url: Origin,
    api_key_env: z.string().min(1).optional().describe("name of the variable that holds the server's key, which is sent as a bearer token"),
  }),
]);
export type NamedGraderServer = { url: string; api_key_env?: string | undefined };

/** Throws `config_invalid` for a variable that is not set. */
export function graderServers(named: readonly NamedGraderServer[], env: Record<string, string | undefined>): GraderServer[] {
  return named.map(({ url, api_key_env }) => ({
    origin: new URL(url).origin,
    key: api_key_env === undefined ? null : keyIn(env, api_key_env, url),
  }));
}

function keyIn(env: Record<string, string | undefined>, variable: string, url: string): string {
  const key = env[variable];
  if (!key)
    throw new AlidadeError("config_invalid", `grader_servers names ${variable} for ${url}, and that variable is not set`, {
      param: "grader_servers",
    });
  keepSecret(key);
  return key;
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` && !/[?#]/.test(text);
}
