/**
 * In which dialects a session's client may ask. A harness speaks one, so a request in another one comes from a command of
 * its agent: each dialect has doors and records of its own, and such calls would be work that no harness did.
 */

import { AlidadeError } from "../../base/errors.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { Dialect, Route } from "../dialects/index.ts";
import { dialects } from "../dialects/index.ts";

type Spoken = Pick<SessionSpec, "dialects">;

/** Routes that say only what is served, or that a protocol is not spoken; paths of several dialects are the same here. */
const common: readonly Route["kind"][] = ["hello", "models", "model", "websocket"];

/** Throws `not_found` for a request that the session's harness has no reason to send. */
export function assertSpoken(spec: Spoken, dialect: Pick<Dialect, "name">, { kind, method, path }: Route): void {
  if (spec.dialects === null || spec.dialects.includes(dialect.name) || common.includes(kind)) return;
  throw new AlidadeError(
    "not_found",
    `${method} ${path} belongs to ${dialect.name}: this session is answered in ${spec.dialects.join(", ")} only (the operator may name it in dialects).`,
  );
}

/** Throws `request_invalid` for a name that no dialect has. */
export function assertDialects(spec: Partial<Spoken>): void {
  const names = dialects.map(({ name }): string => name);
  const unknown = spec.dialects?.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new AlidadeError("request_invalid", `dialects: "${unknown}" is no dialect; there are: ${names.join(", ")}`, {
      param: "dialects",
    });
}
