/**
 * The rollout routes of Polar, NVIDIA's rollout server of 2026: a bridge that submits tasks there and polls, or is called back,
 * does the same here.
 */
import { z } from "zod";
import type { Caller } from "../callers/caller.ts";
import { defineRoute, type ServiceRoute } from "../routes/route.ts";
import type { ServiceParts } from "../service-parts.ts";
import { PolarRequest } from "./polar-request.ts";
import type { PolarTasks } from "./polar-tasks.ts";

export function polarRoutes(tasks: PolarTasks, { ledger }: Pick<ServiceParts, "ledger">): ServiceRoute[] {
  const answer = async (caller: Caller, task_id: string) =>
    new Response(await tasks.answer(caller.ledger, task_id), { headers: { "content-type": "application/json" } });
  return [
    defineRoute({
      method: "post",
      path: "/rollout/task/submit",
      roles: ["submit"],
      title: "Polar's: submits a task of several sessions; the same task again is the same one",
      body: PolarRequest,
      handle: async ({ body }, caller) => {
        await tasks.submit(caller.ledger, body);
        return { task_id: body.task_id, status: "running" };
      },
    }),
    defineRoute({
      method: "get",
      path: "/rollout/task/:task_id",
      roles: ["read"],
      title: "Polar's: the task's status, with the results that there are",
      handle: ({ param }, caller) => answer(caller, param("task_id")),
    }),
    defineRoute({
      method: "delete",
      path: "/rollout/task/:task_id",
      roles: ["submit"],
      title: "Polar's: cancels what is not over of a task",
      query: z.strictObject({
        register_if_missing: z.stringbool().default(false).describe("a task that is not there is refused when it comes"),
      }),
      handle: async ({ param, query }, caller) => {
        await tasks.cancel(caller.ledger, param("task_id"), query.register_if_missing);
        return answer(caller, param("task_id"));
      },
    }),
    defineRoute({
      method: "get",
      path: "/rollout/status",
      roles: ["read"],
      title: "Polar's: the status of each task, and the nodes",
      handle: async (_, caller) => ({ tasks: await tasks.statuses(caller.ledger), nodes: await ledger.nodes() }),
    }),
  ];
}
