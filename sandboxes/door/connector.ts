/** Connects from the host to ports inside a container's network namespace: the reverse of a door. */
import { AlidadeError, messageOf } from "../../base/errors.ts";
import type { DoorConnection } from "./door-kind.ts";

/** Makes connections to 127.0.0.1 of one namespace. Disposing it ends all of them. */
export interface Connector extends AsyncDisposable {
  /** Rejects if nothing listens at the port. */
  connect(port: number, signal: AbortSignal): Promise<DoorConnection>;
}

/** Longest time to connect on loopback. A loaded machine takes seconds; after this, nothing accepts the connection. */
export const connectMs = 20_000;

export function noService(name: string): AlidadeError {
  return new AlidadeError("not_found", `The sandbox has no service ${JSON.stringify(name)}: name one of environment.services.`);
}

export function connectError(service: string, port: number, cause: unknown): AlidadeError {
  const message = `The service ${service} took no connection at its port ${port}: ${messageOf(cause)}`;
  return new AlidadeError("sandbox_error", message, { cause });
}
