/** Makes a task of a page of MiniWoB++ and its seed. */
import { z } from "zod";
import { JsonObject } from "../../../base/schema/message.ts";
import { Task } from "../../../base/schema/task.ts";
import { withDisplay } from "../../../sandboxes/index.ts";
import { parseTask } from "../../task-error.ts";

/** A row that `service/list.py` prints. `calls`: calls of the tool `computer` that solve the page; null: no solution is known. */
export const MiniwobRow = z.object({
  page: z.string().regex(/^[a-z\d-]{1,60}$/),
  seed: z.number().int().nonnegative(),
  utterance: z.string().max(10_000),
  calls: z.array(JsonObject).max(1_000).nullable(),
});
export type MiniwobRow = z.infer<typeof MiniwobRow>;

export function miniwobId({ page, seed }: Pick<MiniwobRow, "page" | "seed">): string {
  return `miniwob-${page}-${seed}`;
}

const service = "pages";
const port = 8000;
const computer = (args: JsonObject) => ({ server: "computer", tool: "computer", arguments: args });

/** A busy machine shows the effect of a click late. */
const rest = { action: "wait", seconds: 1 };

export function toMiniwobTask(folder: string, row: MiniwobRow, where: string): Task {
  const { page, seed, calls } = row;
  const answers = `import socket; socket.create_connection(("127.0.0.1", ${port})).close()`;
  const task = {
    task_id: miniwobId(row),
    instruction: `The screen shows a page with a small task, and the task is written at its top. Do it with the tool computer. You have one try: the page goes black when it is over.

The task: ${row.utterance}`,
    environment: {
      services: {
        [service]: {
          network: "apart",
          files: folder,
          env: { PYTHONDONTWRITEBYTECODE: "1" },
          command: ["python3", "-s", "/srv/files/serve.py", page, String(seed)],
          healthcheck: { command: ["python3", "-S", "-c", answers], interval_seconds: 0.2, retries: 300 },
          memory_mb: 64,
          pids: 32,
          disk_mb: 32,
        },
      },
      display: { service: "screen", size: "320x320", page: `http://${service}:${port}/${seed}/miniwob/${page}.html` },
    },
    limits: { agent_seconds: 600, memory_mb: 1_024, disk_mb: 256 },
    grader: {
      kind: "composite",
      combine: "all",
      parts: [
        { name: "page", grader: { kind: "state", checks: [{ service, http: { port, post: "/graded", json: "/solved" }, equals: true }] } },
        { name: "tools", grader: { kind: "trajectory", unasked: "refuse" } },
      ],
    },
    ...(calls !== null && { gold_calls: [...calls, rest].map(computer) }),
    data_source: "miniwob",
    labels: { kind: "screen", set: "miniwob", page, seed: String(seed) },
  };
  const parsed = parseTask(Task, task, where);
  return { ...parsed, environment: withDisplay(parsed.environment) };
}
