/** Why a request of a sandbox goes nowhere: thrown by each check, logged and answered in one place. */

import type { NetworkRefusal } from "../../base/schema/network.ts";
import { meaningOf } from "../../base/schema/reasons/meaning.ts";
import { refusals } from "../../base/schema/reasons/network.ts";

const badRequests: readonly NetworkRefusal[] = ["not_a_name", "host_differs", "not_understood"];
const badGateways: readonly NetworkRefusal[] = ["name_unknown", "connect_failed"];

export class RefusedConnection extends Error {
  readonly reason: NetworkRefusal;
  /** The status that a client of HTTP gets. */
  readonly status: 400 | 403 | 502;

  constructor(reason: NetworkRefusal) {
    super(`The sandbox's network refuses this, ${reason}${meaningOf(refusals, reason)}.\n`);
    this.reason = reason;
    this.status = badRequests.includes(reason) ? 400 : badGateways.includes(reason) ? 502 : 403;
  }
}

/** What a request asked for, as a log may show it: without a user or a password, and bounded. */
export function shownAuthority(authority: string): { host: string | null; port: number | null } {
  const [, host = null, port = null] =
    /^(?:[^@]*@)?(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?$/.exec(authority) ?? [];
  return { host, port: port === null ? null : Number(port) };
}
