import assert from "node:assert/strict";
import { test } from "node:test";
import { printed } from "../names.js";

test("names are printed in capital letters", () => {
  assert.equal(printed("Ada Lovelace"), "ADA LOVELACE");
  assert.equal(printed("Grace Hopper"), "GRACE HOPPER");
});

test("an empty name stays empty", () => {
  assert.equal(printed(""), "");
});
