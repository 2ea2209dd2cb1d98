/** Run after the listed files: its result says that theirs are all in. node:test itself waits until nothing runs any more. */
import { test } from "node:test";

test("last", () => {});
