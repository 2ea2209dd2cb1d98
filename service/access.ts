/** Who may do what at the service's listener: tokens, each with its roles. */
import { timingSafeEqual } from "node:crypto";
import { AlidadeError } from "../errors.ts";
import { hashKey } from "../schema/ids.ts";

/** What each may do stands beside the routes. submit: sets, rollouts, cancels; read: states and results; control: weights and nodes; node: for what starts and ends nodes (Slurm, Ray, Kubernetes), which may drain one. */
export const roles = ["submit", "read", "control", "node"] as const;
export type AccessRole = (typeof roles)[number];

export type AccessToken = { token: string; roles: readonly AccessRole[] };

export class Access {
  readonly #known: { hash: Buffer; roles: ReadonlySet<AccessRole> }[];

  constructor(tokens: readonly AccessToken[]) {
    this.#known = tokens.map(({ token, roles }) => ({ hash: Buffer.from(hashKey(token)), roles: new Set(roles) }));
  }

  /** `header`: `Bearer …`. Throws `unauthorized`: 401 for an unknown token, 403 for one with none of the roles. */
  assert(header: string | undefined, wanted: readonly AccessRole[]): void {
    const given = Buffer.from(hashKey(header?.replace(/^Bearer +/i, "") ?? ""));
    const found = this.#known.filter(({ hash }) => timingSafeEqual(hash, given));
    if (found.length === 0) throw new AlidadeError("unauthorized", "the service wants its token as `Authorization: Bearer …`");
    if (!found.some(({ roles }) => wanted.some((role) => roles.has(role))))
      throw new AlidadeError("unauthorized", `this token has not the role ${wanted.join(" or ")}`, { status: 403 });
  }
}
