import assert from "node:assert/strict";
import { test } from "node:test";
import { carrierOf, fromCarrier } from "../../dialects/carrier.ts";
import { newId } from "../../schema/ids.ts";

test("a carrier names its call, and nothing else is a carrier", () => {
  const id = newId("call");
  assert.equal(fromCarrier(carrierOf(id)), id);
  for (const foreign of ["", "ali1.", id, `ali2.${id}`, `ali1.${id}x`, `ali1.${id}\n`, "EqQBCkYIBxgCKkD", `x ali1.${id}`])
    assert.equal(fromCarrier(foreign), null);
});
