import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../base/schema/ids.ts";
import { carrierOf, fromCarrier } from "../../../proxy/dialects/carrier.ts";

test("a carrier names its call, and nothing else is a carrier", () => {
  const id = newId("call");
  assert.equal(fromCarrier(carrierOf(id)), id);
  for (const foreign of ["", "ali1.", id, `ali2.${id}`, `ali1.${id}x`, `ali1.${id}\n`, "EqQBCkYIBxgCKkD", `x ali1.${id}`])
    assert.equal(fromCarrier(foreign), null);
});
