/**
 * Every trainer's own loop trains on what our service samples while it trains: its data set, steps, advantages and loss, with a real
 * vLLM whose weights each of its updates brings in behind the fence. What needs a GPU is one model on the CPU.
 */
import { test } from "node:test";
import { need } from "../../needs.ts";
import { takeSteps } from "./take-steps.ts";

test("every trainer's own loop takes three steps on live rollouts, and a live row's loss is that of an exported row", {
  timeout: 580_000,
}, async (t) => {
  if (!(await need(t, "consumers")) || !(await need(t, "vllm"))) return;
  await takeSteps(t, [
    { name: "verl", rowsEach: "several" },
    { name: "skyrl", rowsEach: "several" },
    { name: "areal", rowsEach: "one" },
    { name: "verifiers", rowsEach: "several" },
    { name: "nemo_gym", rowsEach: "one" },
  ]);
});
