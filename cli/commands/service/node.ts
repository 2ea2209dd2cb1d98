/** `alidade node`: this machine makes rollouts for a ledger in Postgres, beside others. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { lockFolder } from "../../../rollouts/records/index.ts";
import { PostgresLedger } from "../../../service/ledger/index.ts";
import { runNode } from "../../../service/nodes/index.ts";
import type { Config } from "../../config.ts";
import { print, say, toNumber } from "../command-line.ts";
import { rolloutConfig } from "../flags/rollout-flags.ts";
import { chooseBackend } from "../run/choose-backend.ts";
import { terminal } from "../terminal.ts";
import { openWatching } from "../watch/open-watching.ts";
import { loadAllocations } from "./load-allocations.ts";
import { addNodeFlags, logsExpireAfter, type NodeFlags, nodeProgress } from "./node-flags.ts";
import { openNode } from "./open-node.ts";
import { knownTasks, roomFor } from "./service-tasks.ts";
import { joinedBlobs } from "./shared-blobs.ts";
import { whenThere } from "./when-there.ts";

type JoinFlags = NodeFlags & {
  join: string;
  trajectories: string;
  name?: string;
  drainSeconds: number;
  healthPort?: number;
  healthHost?: string;
  waitSeconds: number;
};

export function node(program: Command): void {
  addNodeFlags(program.command("node"))
    .description(
      "Makes rollouts for the ledger of `alidade service --ledger`, beside other nodes. Killed at any time it loses what runs, which another\nnode continues. SIGTERM: it claims nothing more, ends what it has begun and goes.",
    )
    .requiredOption("--join <url>", "the service's ledger: postgres://user@host/database (password by PGPASSWORD or ~/.pgpass)")
    .requiredOption(
      "--trajectories <place>",
      "the service's place of trajectories: a folder on a disk that both see, or s3://bucket/prefix; or the service's address (its token in ALIDADE_SERVICE_TOKEN), to which they are sent",
    )
    .option("--name <name>", "its name in the ledger, unlike that of any other node (default: the host's, and a hash of <out>)")
    .option("--drain-seconds <number>", "after SIGTERM: what still runs then is given back to the ledger", toNumber, 300)
    .option(
      "--health-port <number>",
      "answer GET /health (why nothing is claimed) and GET /metrics on this port, without a token; 0 takes a free one",
      toNumber,
    )
    .option("--health-host <address>", "with --health-port: the address to answer on, such as 0.0.0.0 for a kubelet (default: loopback)")
    // A database of a new cluster takes minutes to start. What is away for longer is a wrong address.
    .option("--wait-seconds <number>", "wait so long for a database or service that is not there yet; 0: do not", toNumber, 600)
    .option("--json", "print one JSON object with name and ledger when it begins")
    .addHelpText(
      "after",
      "\nExample:\n  alidade node --join postgres://alidade@db/rollouts --trajectories /shared/trajectories -c run.yaml\n\nWhat a node shares with the service, and what dies with it: docs/service.md",
    )
    .action(async (flags: JoinFlags) => {
      const drain = terminal().stopSignal();
      await work(await rolloutConfig(flags, []), flags, drain);
    });
}

/** Until it is drained. */
async function work(config: Config, flags: JoinFlags, drain: AbortSignal): Promise<void> {
  await using watching = await openWatching(config, { isMonitored: true });
  const { onProgress, note } = nodeProgress(flags, config);
  const logsSeconds = logsExpireAfter(flags);
  const name = nodeName(flags.name, config.out);
  const folder = join(config.out, "node");
  if (flags.healthHost !== undefined && flags.healthPort === undefined)
    throw new AlidadeError("config_invalid", `--health-host is ${flags.healthHost} without --health-port: give a port too`, {
      param: "health_host",
    });
  const stop = late(drain, secondsOf("--drain-seconds", flags.drainSeconds));
  const backend = await chooseBackend(config, drain, onProgress);
  const known = await knownTasks({ ...config, tasks: [] }, drain, note);
  const { slots, admit } = await roomFor(config, backend, known, drain, note);
  const allocations = await loadAllocations(config.allocation_policies, note);
  await using _lock = await lockFolder(folder);
  const patience = { seconds: secondsOf("--wait-seconds", flags.waitSeconds), note, signal: drain };
  await using ledger = await whenThere(() => PostgresLedger.open(flags.join, "node", { allocations }), patience);
  const blobs = await whenThere(() => joinedBlobs(flags.trajectories, ledger.id), patience);
  const { policies } = await ledger.control();
  const place = {
    folder,
    run_id: `${ledger.id}-${hashed(name)}`,
    backend,
    slots,
    graders: known.graders,
    policies,
    logsExpireAfter: logsSeconds,
    onProgress,
    watching,
  };
  await using opened = await openNode(config, place, { drain, cancel: stop });
  if (flags.json) print(JSON.stringify({ name, ledger: ledger.id, slots: slots.atOnce + (slots.evaluation?.atOnce ?? 0) }));
  else say(`alidade: node ${name} works for the ledger ${ledger.id}`);
  const health = flags.healthPort === undefined ? undefined : { port: flags.healthPort, host: flags.healthHost };
  await runNode({ name, ledger, blobs, admit, health, families: watching.families, ...opened.node }, stop, drain);
}

/** Two processes with one name would each take the other for dead; a folder has one process at a time. */
function nodeName(given: string | undefined, out: string): string {
  if (given === undefined) return `${hostname()}-${hashed(resolve(out))}`;
  if (/^[\w.-]{1,100}$/.test(given)) return given;
  throw new AlidadeError(
    "config_invalid",
    `--name is "${given.slice(0, 100)}": give letters, digits, dots, dashes and underscores, at most 100`,
    {
      param: "name",
    },
  );
}

function hashed(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 6);
}

function secondsOf(flag: string, seconds: number): number {
  if (seconds >= 0) return seconds;
  throw new AlidadeError("config_invalid", `${flag} is ${seconds}: give seconds, 0 or more`, { param: flag.slice(2).replaceAll("-", "_") });
}

/** Fires so many seconds after the first signal. */
function late(first: AbortSignal, seconds: number): AbortSignal {
  const controller = new AbortController();
  first.addEventListener("abort", () => {
    setTimeout(() => controller.abort(new AlidadeError("cancelled", "the node was stopped")), seconds * 1000).unref();
  });
  return controller.signal;
}
