/**
 * The opaque value that travels with reasoning (`signature`, `thoughtSignature`, `encrypted_content`): ours names the call
 * that sampled it, so that a turn can be recognised when a harness sends it back, and its thought with it. It is a pointer
 * into its own session: what it stands for is read from the record, and never taken from the harness.
 */

export function carrierOf(callId: string): string {
  return `ali1.${callId}`;
}

/** The call named by a carrier, or null when it is not ours. */
export function fromCarrier(carrier: string): string | null {
  return /^ali1\.(call[0-9a-z]{20})$/.exec(carrier)?.[1] ?? null;
}
