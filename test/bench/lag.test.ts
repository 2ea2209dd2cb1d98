/** The benchmark of lags, small: its numbers mean nothing, but its trainer gets every rollout and none is too old. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../fakes/processes/cli.ts";

test("a trainer gets all rollouts of each step, and none is older than the bound", { timeout: 300_000 }, async (t) => {
  const sizes = ["--steps", "4", "--groups", "2", "--samples", "2", "--mean", "0.2", "--train", "0.2"];
  const argv = [join(root, "bench/lag.ts"), "--json", ...sizes];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "pipe"], signal: t.signal });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.setEncoding("utf8").on("data", (text: string) => void out.push(text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void err.push(text));
  const [code] = await once(child, "close");
  assert.equal(code, 0, err.join(""));
  const { found } = JSON.parse(out.join("")) as { found: { lag: number; lags: number[] }[] };
  assert.deepEqual(
    found.map(({ lag }) => lag),
    [0, 2],
  );
  for (const { lag, lags } of found) {
    assert.equal(lags.length, 16);
    assert.ok(
      lags.every((one) => one >= 0 && one <= lag),
      `${lags}`,
    );
  }
});
