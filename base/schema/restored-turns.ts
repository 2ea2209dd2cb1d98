/**
 * The restored turns of a call as the log stores them: without those that its base call (of its messages) has too, for
 * every turn of a conversation restores all the turns before it.
 */
import type { CallBegun, Restored } from "./session-log.ts";

/** As it is written. `base`: the restored turns of the base call. */
export function withoutBase(begun: CallBegun, base: readonly Restored[]): CallBegun {
  let shared = 0;
  while (shared < base.length && isSame(base[shared], begun.restored[shared])) shared++;
  return shared === 0 ? begun : { ...begun, restored_before: shared, restored: begun.restored.slice(shared) };
}

/** As it was. */
export function withBase(entry: CallBegun, base: readonly Restored[]): CallBegun {
  const { restored_before: shared = 0, ...begun } = entry;
  return shared === 0 ? begun : { ...begun, restored: [...base.slice(0, shared), ...begun.restored] };
}

function isSame(a: Restored | undefined, b: Restored | undefined): boolean {
  return (
    a?.message_index === b?.message_index &&
    a?.from_call_id === b?.from_call_id &&
    a?.evidence === b?.evidence &&
    a?.status === b?.status &&
    a?.differences.join() === b?.differences.join()
  );
}
