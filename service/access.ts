/** Who may do what at the service's listener: tokens, each with its roles and the namespace whose sets it sees. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { AlidadeError } from "../base/errors.ts";
import { hashKey } from "../base/schema/ids.ts";

/**
 * What each may do stands beside the routes. submit: sets, rollouts, cancels; read: states and results; control: weights and nodes;
 * node: for nodes that send their trajectories, and for what starts and ends nodes (Slurm, Ray, Kubernetes), which may drain one.
 * Weights, engines and nodes serve all sets, so a namespace bounds submit and read alone.
 */
export const roles = ["submit", "read", "control", "node"] as const;
export type AccessRole = (typeof roles)[number];

/** `namespace`: whose sets it sees and makes; null: it sees all of them, and what it makes is the operator's own. */
export type AccessToken = { token: string; roles: readonly AccessRole[]; namespace: string | null };

export class Access {
  readonly #known: { hash: Buffer; pageHash: Buffer; token: AccessToken }[];

  constructor(tokens: readonly AccessToken[]) {
    this.#known = tokens.map((token) => ({
      hash: Buffer.from(hashKey(token.token)),
      pageHash: Buffer.from(hashKey(pageKeyOf(token.token))),
      token,
    }));
  }

  /** The token of the request. `text`: as `tokenOf` reads it. Throws `unauthorized`: 401 for an unknown token, 403 for one with none of the roles. */
  assert(text: string, wanted: readonly AccessRole[]): AccessToken {
    return this.#fitting(text, "hash", wanted);
  }

  /** The token whose `pageKeyOf` it is. Throws as `assert`. */
  assertPageKey(text: string, wanted: readonly AccessRole[]): AccessToken {
    return this.#fitting(text, "pageHash", wanted);
  }

  #fitting(text: string, kind: "hash" | "pageHash", wanted: readonly AccessRole[]): AccessToken {
    const given = Buffer.from(hashKey(text));
    // An empty token is none, even if a file of tokens holds an empty one.
    const found = text === "" ? [] : this.#known.filter((one) => timingSafeEqual(one[kind], given)).map(({ token }) => token);
    if (found.length === 0) throw new AlidadeError("unauthorized", "the service wants its token as `Authorization: Bearer …`");
    const fitting = found.find(({ roles }) => wanted.some((role) => roles.includes(role)));
    if (fitting === undefined)
      throw new AlidadeError("unauthorized", `this token has not the role ${wanted.join(" or ")}`, { status: 403 });
    return fitting;
  }
}

/** A key that is made of a token, opens pages alone, and does not say the token. */
export function pageKeyOf(token: string): string {
  return createHmac("sha256", token).update("alidade pages").digest("hex");
}

/**
 * A request's token, as it comes: `Authorization: Bearer …`, the password of `Authorization: Basic …` (an address such as
 * http://any:token@host for clients that send no header of their own), or Polar's `x-polar-control-token`.
 */
export function tokenOf(header: (name: string) => string | undefined): string {
  const given = header("authorization");
  if (given === undefined) return header("x-polar-control-token") ?? "";
  const [, basic] = /^Basic +(\S+)$/i.exec(given) ?? [];
  if (basic === undefined) return given.replace(/^Bearer +/i, "");
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(basic, "base64").toString("utf8")) ?? [];
  return password ?? "";
}
