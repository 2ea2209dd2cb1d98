/** Exports copies of one trajectory in a process of its own, and looks at its memory on the way. */
import { Writable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { exportTrajectories } from "../../exporters/export-trajectories.ts";
import { exporterNamed } from "../../exporters/registry.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { answerParent } from "../child.ts";
import { sessionLog } from "../reconstruct/session.ts";

export type Question = { format: string; trajectories: number; calls: number; tokens: number };
export type Answer = {
  rows: number;
  seconds: number;
  bytes: number;
  /** Bytes that a garbage collection leaves, at each eighth of the reading and of the writing. */
  reading: number[];
  writing: number[];
  peakRss: number;
};

/** Rollouts of a group. */
const groupSize = 8;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

answerParent({ export: measure });

async function measure({ format, trajectories, calls, tokens }: Question): Promise<Answer> {
  const whole = reconstruct(sessionLog({ calls, tokens, kind: "append" }), { status: "graded", group: { size: groupSize } });
  const text = JSON.stringify(whole);
  const [reading, writing]: [number[], number[]] = [[], []];
  const eighth = Math.max(1, Math.floor(trajectories / 8));
  let bytes = 0;
  let written = 0;
  const sink = new Writable({
    write(chunk: Uint8Array, _encoding, done) {
      bytes += chunk.length;
      if (++written % eighth === 0) writing.push(retained());
      done();
    },
  });
  function* source(): Iterable<Trajectory> {
    for (let at = 0; at < trajectories; at++) {
      if (at % eighth === eighth - 1) reading.push(retained());
      yield copyOf(text, at);
    }
  }
  const started = performance.now();
  const { rows } = await exportTrajectories(exporterNamed(format), source(), sink);
  return { rows, bytes, seconds: (performance.now() - started) / 1000, reading, writing, peakRss: process.resourceUsage().maxRSS * 1024 };
}

/** Read and checked as a run's file is. */
function copyOf(text: string, at: number): Trajectory {
  const copy = Trajectory.parse(JSON.parse(text));
  const group = { ...copy.group, id: `group${Math.floor(at / groupSize)}`, sample_index: at % groupSize };
  return { ...copy, trajectory_id: `traj${at}`, session_id: `ses${at}`, rollout_id: `roll${at}`, reward: at % 2, group };
}

function retained(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
