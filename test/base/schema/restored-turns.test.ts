import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { withBase, withoutBase } from "../../../base/schema/restored-turns.ts";
import type { CallBegun, Restored } from "../../../base/schema/session-log.ts";

const restored = fc.record<Restored>(
  {
    message_index: fc.nat({ max: 3 }),
    from_call_id: fc.constantFrom("call1", "call2"),
    evidence: fc.constantFrom("content", "carrier"),
    status: fc.constantFrom("identical", "edited"),
    differences: fc.array(fc.constantFrom("text", "arguments"), { maxLength: 2 }),
  },
  { noNullPrototype: true },
);
const list = fc.array(restored, { maxLength: 4 });

test("what is written without the base's turns is read back whole, and says nothing twice", () => {
  fc.assert(
    fc.property(list, list, (base, own) => {
      for (const whole of [own, [...base, ...own], base]) {
        const begun = { restored: whole } as CallBegun;
        assert.deepEqual(withBase(withoutBase(begun, base), base), begun);
      }
      const grown = withoutBase({ restored: [...base, ...own] } as CallBegun, base);
      assert.ok(grown.restored.length <= own.length);
    }),
  );
});

test("an entry of an older log is read as it is", () => {
  const begun = { restored: [{ message_index: 1 }] } as CallBegun;
  assert.deepEqual(withBase(begun, [{ message_index: 0 } as Restored]), begun);
});
