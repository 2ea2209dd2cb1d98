import assert from "node:assert/strict";
import { test } from "node:test";
import { openEngines } from "../../commands/open-engine.ts";
import { Config } from "../../config.ts";

test("an engine that the configuration names wrongly is refused with the field's own name", async (t) => {
  const cases: [object, RegExp][] = [
    [{}, /^engine\.url is not set/],
    [{ engine: { url: "localhost:8000" } }, /^engine\.url is "localhost:8000"/],
    [
      {
        engines: [
          { name: "a", url: "http://127.0.0.1:1" },
          { name: "b", url: "foo" },
        ],
      },
      /^engines\[1\]\.url is "foo"/,
    ],
    [{ engines: [{ name: "a", url: "http://127.0.0.1:1", api_key_env: "NO_SUCH_KEY" }] }, /^engines\[0\]\.api_key_env names NO_SUCH_KEY/],
  ];
  for (const [config, message] of cases)
    await assert.rejects(openEngines(Config.parse(config), t.signal), { code: "config_invalid", message });
});
