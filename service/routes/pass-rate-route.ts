/** Answers how often each task of a set was passed. */
import { z } from "zod";
import { type Interval, shareInterval } from "../../base/statistics/intervals.ts";
import { rateOf } from "../../tasks/sets/index.ts";
import { passReward } from "../figures/index.ts";
import type { SetPasses } from "../set-passes.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

/** `pass_rate`: among the results with a reward; null: there are none. `pass_interval`: its 95 % interval, within 0 to 1. */
export type TaskPassRate = { task_id: string; measured: number; passed: number; pass_rate: number | null; pass_interval: Interval | null };

/** `open`: rollouts that are not over; the rates change until all are. `expired`: removed results, which may be missing from the rates. */
export type SetPassRates = { set_id: string; pass: number; tasks: TaskPassRate[]; open: number; expired: number };

const PassQuery = z.strictObject({
  pass: z.coerce.number().default(passReward).describe("a rollout passes with this reward or more"),
});

export function passRateRoute(passes: SetPasses): ServiceRoute {
  return defineRoute({
    method: "get",
    path: "/sets/:id/pass-rates",
    roles: ["read"],
    title: "The measured pass rate of each task of a set that has a result, with its 95 % interval; null where no result has a reward",
    query: PassQuery,
    handle: async ({ param, query: { pass }, signal }, { ledger }): Promise<SetPassRates> => {
      const set_id = param("id");
      const { rollouts, expired } = await ledger.set(set_id);
      const tasks = [...(await passes.of(set_id, pass, signal))].map(([task_id, { measured, passed }]) => {
        const pass_rate = rateOf({ measured, passed });
        return { task_id, measured, passed, pass_rate, pass_interval: pass_rate === null ? null : shareInterval(pass_rate, measured) };
      });
      return { set_id, pass, tasks, open: rollouts.held + rollouts.queued + rollouts.running, expired: expired?.rollouts ?? 0 };
    },
  });
}
