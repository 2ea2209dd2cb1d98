/**
 * The same for trainers that no registry has, from a checkout that a variable names:
 *
 *     ALIDADE_SLIME=~/slime ALIDADE_MILES=~/miles ALIDADE_PRIME_RL=~/prime-rl ALIDADE_NEMO_RL=~/nemo-rl npm test -- trainers/checkouts
 */
import { join } from "node:path";
import { test } from "node:test";
import { need } from "../../needs.ts";
import { takeSteps } from "./take-steps.ts";

const checkouts: { loops: string[]; rowsEach?: "one"; variable: string; paths: string[] }[] = [
  { loops: ["slime"], variable: "ALIDADE_SLIME", paths: ["."] },
  { loops: ["miles", "miles_async"], variable: "ALIDADE_MILES", paths: ["."] },
  { loops: ["nemo_rl"], rowsEach: "one", variable: "ALIDADE_NEMO_RL", paths: ["."] },
  { loops: ["prime_rl"], variable: "ALIDADE_PRIME_RL", paths: ["src", "packages/prime-rl-configs/src"] },
];

for (const { loops, rowsEach = "several", variable, paths } of checkouts) {
  const name = loops[0] ?? "";
  test(`${name}'s own loop takes three steps on live rollouts`, { timeout: 580_000 }, async (t) => {
    const checkout = process.env[variable];
    if (!checkout) {
      const left = `${variable} names no checkout of ${name}; it is run by hand`;
      t.diagnostic(left);
      // No registry has the checkout. So with ALIDADE_TEST_ALL it is only reported, and not counted as missing.
      if (process.env.ALIDADE_TEST_ALL !== "1") t.skip(left);
      return;
    }
    if (!(await need(t, "consumers")) || !(await need(t, "vllm"))) return;
    const from = paths.map((path) => join(checkout, path));
    await takeSteps(
      t,
      loops.map((name) => ({ name, rowsEach, paths: from })),
    );
  });
}
