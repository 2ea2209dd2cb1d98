/** The ticket desk of examples/tasks/ticket-desk, in Docker, by the real programs: what earns there and what does not. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { AdmissionRecord } from "../../base/schema/admission.ts";
import { harnesses } from "../../harnesses/index.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";
import { act, type Play, picturesIn, playOnScreen, type Step, tamperingBy } from "./screen-plays.ts";

const scratch = scratchFolder("ticket-desk");
const timeout = 600_000;
const folder = join(import.meta.dirname, "../../examples/tasks/ticket-desk");

/** A busy machine may need more than the time in which a screen counts as settled. */
const rest = act("wait", { seconds: 2 });
const row = (place: number): Step[] => [act("screenshot"), act("click", { x: 300, y: 122 + 60 * place }), rest];
const fill = [
  act("click", { x: 300, y: 122 }),
  act("type", { text: "mira" }),
  act("click", { x: 345, y: 192 }),
  act("click", { x: 240, y: 265 }),
  rest,
];

const clicks = [{ x: 300, y: 122 }, { x: 300, y: 122 }, null, { x: 345, y: 192 }, { x: 240, y: 265 }];
const tamper = tamperingBy(clicks.map((at) => (at === null ? { action: "type", text: "mira" } : { action: "click", ...at })));

const byPixels: Record<string, Play> = {
  "the right ticket": { steps: [...row(0), ...fill], reward: 1 },
  "the wrong row": { steps: [...row(3), ...fill], reward: 0 },
  nothing: { steps: [], reward: 0 },
  "the right ticket and one more": { steps: [...row(0), ...fill, ...row(1), ...fill], reward: 0 },
  "clicks by a command, without a model's call": { steps: [tamper], reward: 0 },
};

const browse = (tool: string, args: Record<string, unknown>): Step => ({ tool: `browser_${tool}`, args });
const byPage = (ticket: number): Step[] => [
  browse("navigate", { url: `http://desk:8080/tickets/${ticket}` }),
  browse("type", { element: "Assignee", target: 'input[name="assignee"]', text: "mira" }),
  browse("click", { element: "closed", target: 'input[value="closed"]' }),
  browse("click", { element: "Save", target: "button" }),
];
const byElements: Record<string, Play> = {
  "the right ticket": { steps: [...byPage(1), browse("take_screenshot", {})], reward: 1 },
  "the wrong row": { steps: byPage(4), reward: 0 },
  nothing: { steps: [], reward: 0 },
  "the right ticket and one more": { steps: [...byPage(1), ...byPage(2)], reward: 0 },
  "a script in the page": { steps: [browse("evaluate", { function: "() => fetch('/tickets/1', { method: 'POST' })" })], reward: 0 },
};

/** Two harnesses that carry pictures in their own ways. ALIDADE_TEST_SCREENS=all plays all with all. */
const short: Record<string, string[]> = {
  "claude-code": ["the right ticket", "clicks by a command, without a model's call"],
  codex: ["the wrong row", "a script in the page"],
};
const isWhole = process.env.ALIDADE_TEST_SCREENS === "all";

for (const [server, file, plays] of [
  ["computer", "task.yaml", byPixels],
  ["playwright", "playwright.yaml", byElements],
] as const)
  for (const { name } of harnesses.filter(({ tools }) => tools))
    for (const [play, { steps, reward }] of Object.entries(plays)) {
      const isShort = short[name]?.includes(play) && (server === "computer" || name === "codex");
      if (!isWhole && !isShort) continue;
      test(`${name} by ${server}, ${play}: ${reward}`, { timeout }, async (t) => {
        const run = await played(t, { harness: name, server, file, steps });
        if (run === null) return;
        const { record, requests } = run;
        assert.equal(record.error, null);
        assert.equal(record.verdict?.reward, reward, JSON.stringify(record.verdict?.evidence));
        const { tool_runs = [] } = (await readTrajectories(run.folder))[0] ?? assert.fail("no trajectory");
        const served = tool_runs
          .filter(({ unasked }) => !unasked)
          .flatMap(({ parts }) => parts?.flatMap(({ sha256 }) => sha256 ?? []) ?? []);
        assert.deepEqual(picturesIn(requests.at(-1)), served, "each picture is at the engine as it was served");
        if (server === "computer" && steps.some((step) => "tool" in step)) assert.equal(served.length, steps.length);
        if (steps.some((step) => "shell" in step))
          assert.match(JSON.stringify(requests.at(-1)?.messages), /open \[4000\] \[\]/, "nothing but the door is there");
      });
    }

test("an operator sees the agent's own screen while it runs, and the record holds nothing of it", { timeout }, async (t) => {
  const looks: Look[] = [];
  const order = { harness: "claude-code", server: "computer", file: "task.yaml", steps: byPixels["the right ticket"]?.steps ?? [] };
  const run = await played(t, { ...order, look: async (out) => looks.push(await lookAt(out)) });
  if (run === null) return;
  const { record, folder, requests } = run;
  assert.deepEqual([record.error, record.verdict?.reward], [null, 1], "looking changed nothing");
  const pictures = picturesIn(requests.at(-1));
  assert.equal(looks.length, order.steps.length + 1);
  const rested = order.steps.flatMap((step, at) => ("args" in step && step.args.action === "wait" ? [at] : []));
  for (const at of rested)
    assert.equal(looks[at + 1]?.sha256, pictures[at], "a screen at rest is as the agent's picture of it, to the byte");
  // The watch takes one picture a second. Only the two waits are as long, so a fast machine shows three screens.
  assert.ok(new Set(looks.map(({ sha256 }) => sha256)).size >= 3, "the pictures change as the screen does");
  assert.ok(looks.every(({ denied }) => denied === 401));
  const { tool_runs = [] } = (await readTrajectories(folder))[0] ?? assert.fail("no trajectory");
  assert.equal(tool_runs.length, order.steps.length);
});

type Look = { sha256: string; denied: number };

/** Returns the screen that the run's control listener shows, and the status of its answer without the token. */
async function lookAt(out: string): Promise<Look> {
  const file = (await readdir(out, { recursive: true })).find((name) => name.endsWith("control.json"));
  const { url, token } = JSON.parse(await readFile(join(out, file ?? "control.json"), "utf8")) as { url: string; token: string };
  const headers = { authorization: `Bearer ${token}` };
  const { sessions } = (await (await fetch(`${url}/sessions`, { headers })).json()) as { sessions: { session_id: string }[] };
  const screen = `${url}/sessions/${sessions[0]?.session_id}/screen`;
  const answer = await fetch(screen, { headers });
  return { sha256: hash("sha256", Buffer.from(await answer.arrayBuffer())), denied: (await fetch(screen)).status };
}

test("check makes the known clicks and the bad ones, and each earns by the rows that the desk holds", { timeout }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const result = await cli(["check", folder, "--again", "--times", "1", "--sandbox", "docker", "--json"]);
  const { checks } = jsonOf<{ checks: { outcome: string; record: AdmissionRecord | null }[] }>(result);
  const rewards = checks[0]?.record?.gradings.slice(0, 3).map(({ reward }) => reward);
  assert.deepEqual([checks[0]?.outcome, rewards], ["admitted", [1, 0, 0]], result.stderr);
});

/** `look` is called at each request of the agent, with the folder of the run. */
type DeskOrder = { harness: string; server: string; file: string; steps: Step[]; look?: (out: string) => Promise<unknown> };

function played(t: TestContext, { file, ...order }: DeskOrder) {
  return playOnScreen(t, { ...order, task: join(folder, file), says: "assign it to mira", scratch });
}
