import assert from "node:assert/strict";
import { test } from "node:test";
import { clamp } from "../src/clamp.js";

test("a value above the range is its upper limit", () => assert.equal(clamp(12, 0, 10), 10));
test("a value below the range is its lower limit", () => assert.equal(clamp(-2, 0, 10), 0));
test("a value in the range stays", () => assert.equal(clamp(7, 0, 10), 7));
