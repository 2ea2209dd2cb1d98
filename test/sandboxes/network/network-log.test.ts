import assert from "node:assert/strict";
import { test } from "node:test";
import { NetworkLog } from "../../../sandboxes/network/network-log.ts";

test("a part of a log tells the whole what was asked, and has bytes and a list of its own", () => {
  const whole = new NetworkLog();
  whole.opened("agent", { host: "a.org", port: 443 })(10, 20);
  for (let at = 0; at < 300; at++) whole.refused("agent", { host: `h${at}.org`, port: 443 }, "name_not_allowed");
  const part = new NetworkLog(whole);
  part.opened("grading", { host: "b.org", port: 443 })(1, 2);
  part.refused("grading", { host: "c.org", port: 443 }, "name_not_allowed");
  assert.deepEqual([whole.bytes, part.bytes], [33, 3]);
  assert.deepEqual(
    part.use().refusals.map(({ host }) => host),
    ["c.org"],
  );
  assert.deepEqual(
    whole.use().destinations.map(({ host, received_bytes }) => [host, received_bytes]),
    [
      ["a.org", 20],
      ["b.org", 2],
    ],
  );
});
