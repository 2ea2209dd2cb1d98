/** `alidade service`: trainers hand in tasks and take finished rollouts, for days; ledger, node and listener in one process. */
import { writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Command } from "commander";
import { FolderBlobs } from "../../blobs/index.ts";
import { type Config, loadConfig, sessionOptionsOf } from "../../config.ts";
import { harnesses, harnessNamed } from "../../harnesses/index.ts";
import { currentOwner } from "../../host/owner.ts";
import { SqliteLedger } from "../../ledger/index.ts";
import { type NodeSetup, runNode } from "../../node/index.ts";
import { assertServed, type EngineSpec, HarnessProxy } from "../../proxy/index.ts";
import { lockFolder, type ProgressEvent, RunFolder } from "../../rollouts/index.ts";
import { clearAway, reapMeanwhile } from "../../rollouts/reap-meanwhile.ts";
import { DiskBudget } from "../../sandboxes/disk-budget.ts";
import type { EngineAddress } from "../../sandboxes/engines/engine-connection.ts";
import { WarmPool } from "../../sandboxes/warm-pool.ts";
import { roles, ServiceControl, ServiceListener } from "../../service/index.ts";
import { Appender, DiskStore, privateFileMode } from "../../store/index.ts";
import { version } from "../../version.ts";
import { print, say, toNumber } from "../command-line.ts";
import { addEngineFlags, type EngineFlags, enginesOf } from "../flags/engine-flags.ts";
import { dockerEngineOption, graderOption, sandboxWords, taskFormatOption } from "../flags/plug-in-flags.ts";
import { addSessionFlags, type SessionFlags, sessionOptionsGiven } from "../flags/session-flags.ts";
import { sayUnknownVariables } from "../flags/unknown-variables.ts";
import { openEngines } from "../open-engine.ts";
import { chooseBackend } from "../run/choose-backend.ts";
import { harnessOf } from "../run/harness-of.ts";
import { liveProgress } from "../run/live-progress.ts";
import { networkBounds } from "../run/network-bounds.ts";
import { terminal } from "../terminal.ts";
import { tasksOf } from "./service-tasks.ts";
import { accessOf, assertMayListen, defaultTokenVariable, tokensOf } from "./service-tokens.ts";

type ServiceFlags = SessionFlags &
  EngineFlags & {
    config?: string;
    harness?: string;
    sandbox?: string;
    dockerEngine?: EngineAddress[];
    unsafeHost?: boolean;
    grader?: string[];
    taskFormat?: string[];
    concurrency?: number;
    overcommit?: boolean;
    allowPublicNetwork?: boolean;
    out?: string;
    host: string;
    port: number;
    tokenEnv?: string[];
    json?: boolean;
  };

export function service(program: Command): void {
  addSessionFlags(addEngineFlags(program.command("service")))
    .description(
      "Takes tasks from trainers over HTTP, runs them through the harness and hands out results by cursor. All state is in <out>/service/:\nstarted again after any end it goes on, what ran is run again and what was finished is served again from the trainer's cursor.",
    )
    .argument("[tasks...]", "task files or folders: trainers name a task by its task_id, or send a whole one")
    .option("-c, --config <file>", "run file: YAML with any of the keys of `alidade config --schema`")
    .option(
      "--harness <name>",
      `${harnesses.map(({ name }) => name).join(", ")}, or the file of a plug-in; a set may name another built-in one`,
    )
    .option("--sandbox <name>", sandboxWords)
    .addOption(dockerEngineOption())
    .option("--unsafe-host", "allow the process sandbox, which isolates nothing: a holder of the token runs commands as you")
    .addOption(graderOption())
    .addOption(taskFormatOption())
    .option("--concurrency <number>", "harnesses running at once", toNumber)
    .option("--overcommit", "run also where all sandboxes together may take more memory or disk than the machine has")
    .option("--allow-public-network", "allow tasks that ask for the whole public network (`environment.network: public`)")
    .option("-o, --out <folder>", "folder for what is recorded")
    .option("--host <address>", "address to listen on; beyond loopback only with a token of yours", "127.0.0.1")
    .option("-p, --port <number>", "port to listen on; 0 takes a free one", toNumber, 8700)
    .option(
      "--token-env <name...>",
      `variable that holds a token, or NAME=${roles.join(",")} for some roles only (default: ${defaultTokenVariable}; without one a token is made and kept in <out>/service/service.json)`,
    )
    .option("--json", "print one JSON object with url and token_file")
    .addHelpText(
      "after",
      "\nExample:\n  alidade service my-tasks/ --engine http://127.0.0.1:8000 --harness pi\n\nThe Python client and what a trainer does with it: docs/service.md",
    )
    .action(async (tasks: string[], flags: ServiceFlags) => {
      const signal = terminal().stopSignal();
      await serveRollouts(await configOf(tasks, flags), flags, signal);
    });
}

async function configOf(tasks: string[], flags: ServiceFlags): Promise<Config> {
  const config = await loadConfig({
    env: terminal().env,
    file: flags.config,
    overrides: {
      ...enginesOf(flags),
      harness: flags.harness,
      sandbox: flags.sandbox,
      docker_engines: flags.dockerEngine,
      unsafe_host: flags.unsafeHost,
      graders: flags.grader,
      task_formats: flags.taskFormat,
      ...sessionOptionsGiven(flags),
      concurrency: { run: flags.concurrency },
      overcommit: flags.overcommit,
      allow_public_network: flags.allowPublicNetwork,
      out: flags.out,
      tasks: tasks.length > 0 ? tasks.map((path) => resolve(path)) : undefined,
    },
  });
  sayUnknownVariables(config);
  const base = flags.config === undefined ? process.cwd() : dirname(resolve(flags.config));
  config.tasks = config.tasks.map((path) => (isAbsolute(path) ? path : join(base, path)));
  return config;
}

/** All parts in one process, until the signal fires. */
async function serveRollouts(config: Config, flags: ServiceFlags, signal: AbortSignal): Promise<void> {
  const show = liveProgress();
  const onProgress = (event: ProgressEvent): void => {
    if (!flags.json || event.type === "note") show(event);
  };
  const note = (text: string): void => onProgress({ type: "note", text });
  const folder = join(config.out, "service");
  const given = tokensOf(flags.tokenEnv);
  assertMayListen(flags.host, given);
  const backend = await chooseBackend(config, signal, onProgress);
  const { known, taskOf, slots, graders } = await tasksOf(config, backend, signal, note);
  await using _lock = await lockFolder(folder);
  await using opened = await openEngines(config, signal);
  await using ledger = SqliteLedger.open(join(folder, "ledger.sqlite"));
  await using attempts = await Appender.open(join(folder, "attempts.jsonl"));
  const named = new Set(Object.keys((await ledger.control()).policies));
  await using proxy = await HarnessProxy.start({
    // The names that the trainer gave last are in the ledger; those of the configuration are older.
    engines: opened.engines.map((engine): EngineSpec => (named.has(engine.name) ? { ...engine, policy: null } : engine)),
    routes: config.routes,
    pauseWaitSeconds: config.pause_wait_seconds,
    bounds: config.bounds,
    store: new DiskStore(RunFolder.sessions(folder)),
    version,
    signal,
  });
  assertServed(proxy.pool.slots, config.routes, config.model);
  if (config.purpose === "train") proxy.assertTrainable();
  const control = await ServiceControl.restore(proxy, ledger, note, signal);
  await using warm = new WarmPool(backend, config.warm);
  const setup: NodeSetup["setup"] = {
    run_id: ledger.id,
    owner: await currentOwner(),
    backend,
    ...(config.warm.sandboxes > 0 && { warm }),
    disk: new DiskBudget(backend, config.disk),
    proxy,
    folder: { blobs: join(folder, "blobs"), record: (record) => attempts.append(`${JSON.stringify(record)}\n`) },
    slots,
    graders,
    network: { allow_public: config.allow_public_network, bounds: networkBounds(config.bounds) },
    onProgress,
  };
  // Sandboxes of the process that died: their calls would reach no proxy.
  await clearAway(setup, { run: ledger.id }, signal);
  await using _reaper = reapMeanwhile(setup);
  const blobs = new FolderBlobs(join(folder, "trajectories"));
  const own = await harnessOf(config);
  const { tokens, token } = await accessOf(folder, given);
  await using listener = new ServiceListener({ ledger, blobs, taskOf, checkHarness: harnessNamed, control }, tokens, version);
  const url = await listener.listen(flags.host, flags.port);
  const file = join(folder, "service.json");
  await writeFile(file, `${JSON.stringify({ url, token })}\n`, { mode: privateFileMode });
  if (flags.json) print(JSON.stringify({ url, token_file: file, tasks: known }));
  else say(`alidade: service on ${url}, ${known} tasks by name; url and token are in ${file}`);
  const harness = async (name: string | null) => (name === null ? own : harnessNamed(name));
  await runNode({ name: "embedded", ledger, blobs, setup, harnessNamed: harness, session: sessionOptionsOf(config) }, signal);
}
