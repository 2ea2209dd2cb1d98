/**
 * `alidade service`: trainers hand in tasks and take finished rollouts, for days. Ledger, node and listener in one process; over
 * a ledger in Postgres the listener alone, and nodes are processes of their own.
 */
import { join } from "node:path";
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { version } from "../../../base/version.ts";
import { harnessNamed } from "../../../harnesses/index.ts";
import { readTlsFiles, type TlsPair } from "../../../proxy/index.ts";
import { replacePrivateFile } from "../../../proxy/store/index.ts";
import { lockFolder } from "../../../rollouts/records/index.ts";
import { Callbacks, ExpirySweep, GroupHints, roles, ServiceListener, type ServiceParts } from "../../../service/index.ts";
import { type Ledger, PostgresLedger, SqliteLedger, watchMeanwhile, watchNodes } from "../../../service/ledger/index.ts";
import { faultsOfMachine, runNode } from "../../../service/nodes/index.ts";
import { SetPages } from "../../../view/sets/index.ts";
import type { Config } from "../../config.ts";
import { print, say, toNumber } from "../command-line.ts";
import { rolloutConfig } from "../flags/rollout-flags.ts";
import { addTaskChoice, type TaskChoiceFlags, taskChoiceOf } from "../flags/task-choice.ts";
import { addTlsFlags, type TlsFlags, tlsOf } from "../flags/tls-flags.ts";
import { addTrustFlags, type TrustFlags, trustOf } from "../flags/trust-flags.ts";
import { chooseBackend } from "../run/choose-backend.ts";
import { type StopSignals, terminal } from "../terminal.ts";
import { openWatching, type Watching } from "../watch/open-watching.ts";
import { loadAllocations } from "./load-allocations.ts";
import { addNodeFlags, logsExpireAfter, type NodeFlags, nodeProgress } from "./node-flags.ts";
import { openNode } from "./open-node.ts";
import { demandsOf, knownTasks, roomFor } from "./service-tasks.ts";
import { accessOf, assertMayListen, tokensOf } from "./service-tokens.ts";
import { ownBlobs } from "./shared-blobs.ts";
import { defaultTokenVariable } from "./token-words.ts";
import { addWebhookFlags, type WebhookFlags, webhooksOf } from "./webhook-flags.ts";

type ServiceFlags = NodeFlags &
  TaskChoiceFlags &
  WebhookFlags &
  TrustFlags &
  TlsFlags & {
    ledger?: string;
    trajectories?: string;
    host: string;
    port: number;
    tokenEnv?: string[];
    expireAfter?: number;
    polar?: boolean;
  };
type Listening = ServiceFlags & { tls: TlsPair | undefined };

export function service(program: Command): void {
  const trust = { below: "refuse a task that", notAdmitted: "refuse, by name, each task, sent or known," };
  addTlsFlags(addTrustFlags(addWebhookFlags(addTaskChoice(addNodeFlags(program.command("service")))), trust))
    .description(
      "Takes tasks from trainers over HTTP, runs them through the harness and hands out results by cursor. All state is in <out>/service/:\nstarted again after any end it goes on, what ran is run again and what was finished is served again from the trainer's cursor.",
    )
    .argument("[tasks...]", "task files or folders: trainers name a task by its task_id, or send a whole one")
    .option(
      "--ledger <url>",
      "postgres://user@host/database (password by PGPASSWORD or ~/.pgpass): the ledger of several machines. This process makes no rollouts then: start `alidade node` with engines, harness and sandbox",
    )
    .option(
      "--trajectories <place>",
      "folder of finished trajectories, or s3://bucket/prefix with the variables of Amazon's tools; with --ledger one that all nodes reach (default: <out>/service/trajectories)",
    )
    .option("--host <address>", "address to listen on; beyond loopback only with a token of yours", "127.0.0.1")
    .option("-p, --port <number>", "port to listen on; 0 takes a free one", toNumber, 8700)
    .option(
      "--token-env <name...>",
      `variable that holds a token, NAME=${roles.join(",")} for some roles only, NAME=submit,read@team for the sets of one namespace (default: ${defaultTokenVariable}; without one a token is made and kept in <out>/service/service.json)`,
    )
    .option(
      "--expire-after <hours>",
      "remove results so old, with their trajectories, that each consumer of their set has behind its kept cursor; a set may say otherwise (`expire_after`; default: never)",
      toNumber,
    )
    .option("--polar", "also serve the rollout routes of Polar, for its bridges: docs/service/polar.md#bridges-of-polar")
    .option("--json", "print one JSON object with url and token_file")
    .addHelpText(
      "after",
      "\nExample:\n  alidade service my-tasks/ --engine http://127.0.0.1:8000 --harness pi\n\nThe Python client and what a trainer does with it: docs/service.md",
    )
    .action(async (tasks: string[], flags: ServiceFlags) => {
      const stops = terminal().stopSignals();
      await serveRollouts(
        await rolloutConfig(flags, tasks, { choose: taskChoiceOf(flags), ...trustOf(flags), ...tlsOf(flags) }),
        flags,
        stops,
      );
    });
}

/** Until it is drained. */
async function serveRollouts(config: Config, given: ServiceFlags, stops: StopSignals): Promise<void> {
  assertMayListen(given.host, tokensOf(given.tokenEnv));
  secondsOf(given);
  if (logsExpireAfter(given) !== null && given.ledger !== undefined)
    throw new AlidadeError("config_invalid", "--expire-logs-after goes to the nodes: with --ledger the service keeps no logs", {
      param: "expire_logs_after",
    });
  const flags = { ...given, tls: await readTlsFiles(config.tls) };
  const webhooks = webhooksOf(flags);
  const hints: OpenHints = (ledger, note) => webhooks && new GroupHints(ledger, webhooks, note);
  await using watching = await openWatching(config, { isMonitored: true });
  const open = { hints, setWebhooks: webhooks?.sets ?? null, watching };
  await (flags.ledger === undefined
    ? serveWithNode(config, flags, open, stops)
    : serveAlone(config, flags, flags.ledger, open, stops.drain));
}

/** null: no webhook is to be told. */
type OpenHints = (ledger: Ledger, note: (text: string) => void) => GroupHints | null;

type ServiceWatch = { hints: OpenHints; setWebhooks: ServiceParts["setWebhooks"]; watching: Watching };

/** All parts in one process. */
async function serveWithNode(
  config: Config,
  flags: Listening,
  { hints: openHints, setWebhooks, watching }: ServiceWatch,
  { drain: signal, cancel }: StopSignals,
): Promise<void> {
  const { onProgress, note } = nodeProgress(flags, config);
  const folder = join(config.out, "service");
  const backend = await chooseBackend(config, signal, onProgress);
  const known = await knownTasks(config, signal, note, backend);
  const { slots, admit } = await roomFor(config, backend, known, signal, note);
  const allocations = await loadAllocations(config.allocation_policies, note);
  await using _lock = await lockFolder(folder);
  await using ledger = SqliteLedger.open(join(folder, "ledger.sqlite"), { allocations });
  const { policies } = await ledger.control();
  const place = {
    folder,
    run_id: ledger.id,
    backend,
    slots,
    graders: known.graders,
    policies,
    logsExpireAfter: logsExpireAfter(flags),
    onProgress,
    watching,
  };
  await using opened = await openNode(config, place, { drain: signal, cancel });
  const blobs = await ownBlobs(flags.trajectories ?? join(folder, "trajectories"), ledger.id);
  const taskOf: ServiceParts["taskOf"] = async (given, demands) => {
    const task = await known.taskOf(given, demands);
    admit(task);
    return task;
  };
  const engines = () => opened.proxy.pool.slots.map((slot) => slot.describe());
  await using polar = callbacksOf(flags, ledger, note);
  const nodeFaults = (asked: AbortSignal) => faultsOfMachine(opened.node.setup, asked);
  const own = {
    taskOf,
    namedTasks: known.namedTasks,
    demands: demandsOf(config),
    harnessNamed: opened.node.harnessNamed,
    engines,
    nodeFaults,
  };
  using pages = new SetPages({ ledger, blobs }, folder);
  const parts = { ledger, blobs, ...own, polar, pages, setWebhooks, watcher: watching.watcher, families: watching.families };
  await using _listener = await listen(parts, folder, flags, known.tasks.length);
  await using _hints = openHints(ledger, note);
  await using _sweep = new ExpirySweep({ ledger, blobs, byDefault: secondsOf(flags), note });
  await using _watch = watchMeanwhile(ledger, note);
  await runNode({ name: "embedded", ledger, blobs, ...opened.node }, cancel, signal);
}

/** Nodes are elsewhere: each says itself what it has no room for. */
async function serveAlone(
  config: Config,
  flags: Listening,
  url: string,
  { hints: openHints, setWebhooks, watching }: ServiceWatch,
  signal: AbortSignal,
): Promise<void> {
  const { note } = nodeProgress(flags, config);
  const folder = join(config.out, "service");
  const { tasks, taskOf, namedTasks } = await knownTasks(config, signal, note);
  const allocations = await loadAllocations(config.allocation_policies, note);
  await using _lock = await lockFolder(folder);
  await using ledger = await PostgresLedger.open(url, "service", { allocations });
  const blobs = await ownBlobs(flags.trajectories ?? join(folder, "trajectories"), ledger.id);
  await using polar = callbacksOf(flags, ledger, note);
  const named: ServiceParts["harnessNamed"] = async (name) => (name === null ? null : harnessNamed(name));
  const own = { taskOf, namedTasks, demands: demandsOf(config), harnessNamed: named, engines: null, nodeFaults: null };
  using pages = new SetPages({ ledger, blobs }, folder);
  const parts = { ledger, blobs, ...own, polar, pages, setWebhooks, watcher: watching.watcher, families: watching.families };
  await using _listener = await listen(parts, folder, flags, tasks.length);
  await using _hints = openHints(ledger, note);
  await using _sweep = new ExpirySweep({ ledger, blobs, byDefault: secondsOf(flags), note });
  await watchNodes(ledger, note, signal);
}

/** null: results stay. Throws `config_invalid`. */
function secondsOf({ expireAfter }: ServiceFlags): number | null {
  if (expireAfter === undefined) return null;
  if (expireAfter > 0) return expireAfter * 3600;
  throw new AlidadeError("config_invalid", `--expire-after is ${expireAfter}: give hours, more than 0`, { param: "expire_after" });
}

/** null: Polar's routes are not served. */
function callbacksOf({ polar, allowPrivateWebhook = false }: ServiceFlags, ledger: Ledger, note: (text: string) => void): Callbacks | null {
  return polar ? new Callbacks(ledger, allowPrivateWebhook, note) : null;
}

/** Says where it listens: on the terminal, and in service.json for this user alone. */
async function listen(parts: ServiceParts, folder: string, flags: Listening, known: number): Promise<ServiceListener> {
  const { tokens, token } = await accessOf(folder, tokensOf(flags.tokenEnv));
  const listener = new ServiceListener(parts, tokens, version, flags.tls);
  const url = await listener.listen(flags.host, flags.port);
  const file = join(folder, "service.json");
  await replacePrivateFile(file, `${JSON.stringify({ url, token })}\n`);
  if (flags.json) print(JSON.stringify({ url, token_file: file, tasks: known }));
  else say(`alidade: service on ${url}, ${known} tasks by name; ${token === null ? "its url is" : "url and token are"} in ${file}`);
  return listener;
}
