import assert from "node:assert/strict";
import { test } from "node:test";
import { openEngines } from "../../../cli/commands/proxy/open-engine.ts";
import { Config } from "../../../cli/config.ts";

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

test("an engine's URL with a password or a query is refused, and the password is not repeated", async (t) => {
  for (const url of [
    "http://user:hunter2@127.0.0.1:1",
    "user:hunter2@127.0.0.1:1",
    "ftp://hunter2@127.0.0.1",
    "http://127.0.0.1:1/?key=hunter2",
  ])
    for (const config of [{ engine: { url } }, { engines: [{ name: "a", url }] }])
      await assert.rejects(openEngines(Config.parse(config), t.signal), (error: Error & { code?: string }) => {
        assert.equal(error.code, "config_invalid");
        assert.match(error.message, /^engines?(\[0\])?\.url: /);
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      });
});
