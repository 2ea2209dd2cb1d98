import assert from "node:assert/strict";
import { test } from "node:test";
import { FileCollector } from "../../../base/files/file-collector.ts";

test("folders, links and what is left out are counted too, mounts are not", () => {
  const collector = new FileCollector("/work", { exclude: ["**/.git"] }, ["/work/mounted"]);
  for (let at = 0; at < 300_000; at++) collector.meets(`mounted/${at}`);
  const all = () => {
    for (let at = 0; at < 300_000; at++) collector.meets(at % 2 === 0 ? `folder${at}` : `.git/${at}`);
  };
  assert.throws(all, { code: "output_too_large", message: /more than 200000 files and folders/ });
});

test("a path has an end, in bytes and in folders", () => {
  const collector = new FileCollector("/work", {});
  assert.equal(collector.meets(Array(64).fill("a").join("/")), true);
  assert.throws(() => collector.meets(Array(65).fill("a").join("/")), { code: "output_too_large", message: /64 folders/ });
  assert.equal(collector.meets("é".repeat(1_024)), true);
  assert.throws(() => collector.meets("é".repeat(1_025)), { code: "output_too_large", message: /2048 bytes/ });
});
