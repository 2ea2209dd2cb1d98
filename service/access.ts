/** Who may do what at the service's listener: tokens, each with its roles. */
import { timingSafeEqual } from "node:crypto";
import { AlidadeError } from "../errors.ts";
import { hashKey } from "../schema/ids.ts";

/** submit: sets, rollouts, cancels; read: states and results; control: pause, policy, resume, nodes. */
export const roles = ["submit", "read", "control"] as const;
export type AccessRole = (typeof roles)[number];

export type AccessToken = { token: string; roles: readonly AccessRole[] };

export class Access {
  readonly #known: { hash: Buffer; roles: ReadonlySet<AccessRole> }[];

  constructor(tokens: readonly AccessToken[]) {
    this.#known = tokens.map(({ token, roles }) => ({ hash: Buffer.from(hashKey(token)), roles: new Set(roles) }));
  }

  /** `header`: `Bearer …`. Throws `unauthorized`: 401 for an unknown token, 403 for one without the role. */
  assert(header: string | undefined, role: AccessRole): void {
    const given = Buffer.from(hashKey(header?.replace(/^Bearer +/i, "") ?? ""));
    const found = this.#known.filter(({ hash }) => timingSafeEqual(hash, given));
    if (found.length === 0) throw new AlidadeError("unauthorized", "the service wants its token as `Authorization: Bearer …`");
    if (!found.some(({ roles }) => roles.has(role)))
      throw new AlidadeError("unauthorized", `this token has not the role ${role}`, { status: 403 });
  }
}
