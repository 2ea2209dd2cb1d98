/**
 * Does a rollout that is killed with -9 go on from its last finished call, and how many of its tokens does that spare?
 *
 *     node bench/resume.ts                      100 kills over 60 rollouts: half of a run, half of a service with a node of its own
 *     node bench/resume.ts --kills 10 --rollouts 6 --killed run
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { markdownTable, numbersOf, surroundings } from "./measure.ts";
import { type Killed, type KillsAudit, killAndGoOn } from "./resume/killed-process.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    rollouts: { type: "string", default: "60" },
    turns: { type: "string", default: "9" },
    seed: { type: "string", default: "1" },
    killed: { type: "string", default: "run,service" },
    json: { type: "boolean", default: false },
  },
});
const { kills, rollouts, turns, seed } = numbersOf(values, "kills", "rollouts", "turns", "seed");
const chosen = values.killed.split(",") as Killed[];
const audits: ({ killed: Killed } & KillsAudit)[] = [];
for (const killed of chosen) {
  const place = await mkdtemp(join(tmpdir(), "alidade-resume-"));
  const share = { kills: Math.round(kills / chosen.length), rollouts: Math.round(rollouts / chosen.length) };
  const say = (text: string): void => console.error(`${killed}: ${text}`);
  audits.push({ killed, ...(await killAndGoOn({ place, killed, ...share, turns, seed, say })) });
  await rm(place, { recursive: true, force: true });
}
if (values.json) console.log(JSON.stringify({ ...surroundings(), turns, audits }));
else {
  const names = Object.keys(audits[0] ?? {}) as (keyof (typeof audits)[number])[];
  const shown = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));
  console.log(JSON.stringify(surroundings()));
  console.log(
    markdownTable(
      ["", ...audits.map(({ killed }) => killed)],
      names.slice(1).map((name) => [name, ...audits.map((audit) => shown(audit[name]))]),
    ).join("\n"),
  );
}
const isSound = audits.every((one) => one.lost + one.doubled + one.again_tokens + one.wrongly_trained === 0);
process.exitCode = isSound ? 0 : 1;
