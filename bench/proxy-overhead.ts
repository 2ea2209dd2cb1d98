/**
 * What does the proxy cost against a bare hono + undici `dispatch` pass-through?
 *
 *     npm run bench                          the table, about three minutes
 *     npm run bench -- --payload b           one payload (repeatable)
 *     npm run bench -- --json                the same as JSON
 *     npm run bench -- --quick               a smoke test: the numbers mean nothing
 *     npm run bench -- --profile DIR         also writes a CPU profile of alidade a row (a play of its own after the rounds)
 *
 * One mock upstream, one load generator and the contestants, each a process. A round plays every contestant after the
 * other, so that all see the same noise; ratios are taken within a round and the median of the rounds is told.
 */
import { parseArgs } from "node:util";
import { payloads } from "./proxy-overhead/payloads.ts";
import { measureOverhead } from "./proxy-overhead/rounds.ts";
import { renderReport } from "./proxy-overhead/table.ts";

const { values: options } = parseArgs({
  options: {
    payload: { type: "string", multiple: true, default: payloads.map(({ name }) => name) },
    shape: { type: "string", multiple: true, default: ["growing", "one-shot"] },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    profile: { type: "string" },
  },
});

const report = await measureOverhead({
  payloads: options.payload,
  shapes: (["growing", "one-shot"] as const).filter((shape) => options.shape.includes(shape)),
  rounds: options.quick ? 1 : Number(options.rounds),
  secondsACell: options.quick ? 0.05 : Number(options.seconds),
  concurrent: options.quick ? 2 : 16,
  quick: options.quick,
  ...(options.profile && { profile: options.profile }),
});
console.log(options.json ? JSON.stringify(report, null, 2) : renderReport(report));
