/**
 * The opaque value that travels with reasoning (`signature`, `encrypted_content`): ours names the call that sampled it,
 * so that a turn can be recognised when a harness sends it back. It is a pointer, never trusted beyond its session.
 */

export function carrierOf(callId: string): string {
  return `ali1.${callId}`;
}

/** The call named by a carrier, or null when it is not ours. */
export function fromCarrier(carrier: string): string | null {
  return /^ali1\.(call[0-9a-z]{20})$/.exec(carrier)?.[1] ?? null;
}
