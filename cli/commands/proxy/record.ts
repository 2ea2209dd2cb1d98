/** `alidade record -- command …`: any local program, with the usual variables set, recorded as one session. */
import { spawn } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { currentOwner } from "../../../base/host/owner.ts";
import { ownedFolder, temporary } from "../../../base/host/temporary-folder.ts";
import { newId } from "../../../base/schema/ids.ts";
import { meaningOf } from "../../../base/schema/reasons/meaning.ts";
import { untrainedReasons } from "../../../base/schema/reasons/untrained.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { version } from "../../../base/version.ts";
import { harnesses, harnessFor, usualVariables } from "../../../harnesses/index.ts";
import { assertRoutes, HarnessProxy } from "../../../proxy/index.ts";
import { Appender, DiskStore, vocabularyFolder } from "../../../proxy/store/index.ts";
import { describeOmitted } from "../../../reconstruct/index.ts";
import { lockFolder } from "../../../rollouts/records/index.ts";
import { visibleText } from "../../../view/text/index.ts";
import { sessionOptionsOf } from "../../config.ts";
import { print, say } from "../command-line.ts";
import { commandConfig } from "../flags/command-config.ts";
import { addEngineFlags, type EngineFlags, enginesOf } from "../flags/engine-flags.ts";
import { addSessionFlags, type SessionFlags, sessionOptionsGiven } from "../flags/session-flags.ts";
import { policyNotes } from "../run/policy-notes.ts";
import { terminal } from "../terminal.ts";
import { openWatching } from "../watch/open-watching.ts";
import { openEngines } from "./open-engine.ts";

/** A person's program keeps its own parameters, unless flags force others. */
const defaults = { purpose: "live" } as const;

export function record(program: Command): void {
  addSessionFlags(addEngineFlags(program.command("record")), { defaults })
    .description(
      `Runs a local program with OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, GOOGLE_GEMINI_BASE_URL and GEMINI_API_KEY\npointing at the proxy, records its calls as one session (those that name a rollout of their own, as one each) and passes its exit code on. A harness that Alidade knows (${harnesses.flatMap(({ commands }) => commands[0] ?? []).join(", ")})\nis configured in a temporary home. Leaves <out>/trajectories.jsonl.`,
    )
    .argument("<command...>", "the program and its arguments, after --")
    .option("-c, --config <file>", "YAML file with any of the keys of `alidade config --schema`")
    .option("-o, --out <folder>", "folder for the session log and trajectories.jsonl (default: a new one below runs/)")
    .option("--json", "print one JSON object with session, calls and trajectory at the end")
    .passThroughOptions()
    .addHelpText(
      "after",
      '\nExamples:\n  alidade record --engine http://127.0.0.1:8000 --out out -- python3 agent.py\n  alidade record -e http://127.0.0.1:8000 -o out -- codex exec "fix the failing test"',
    )
    .action(async (command: string[], flags: RecordFlags) => {
      terminal().exitCode = await recordCommand(command, flags);
    });
}

type RecordFlags = SessionFlags & EngineFlags & { config?: string; out?: string; json?: boolean };

async function recordCommand(command: string[], flags: RecordFlags): Promise<number> {
  const signal = terminal().stopSignal();
  const config = await commandConfig(flags.config, {
    defaults,
    overrides: {
      ...enginesOf(flags),
      out: flags.out,
      ...sessionOptionsGiven(flags),
    },
  });
  const out = flags.out ?? join(config.out, newId("run").slice(0, 11));
  const relay = config.purpose === "live" ? "live" : "buffered";
  await using watching = await openWatching(config);
  await using opened = await openEngines(config, signal);
  await using proxy = await HarnessProxy.start({
    engines: opened.engines,
    routes: config.routes,
    pauseWaitSeconds: config.pause_wait_seconds,
    store: new DiskStore(join(out, "sessions")),
    vocabulary: join(out, vocabularyFolder),
    version,
    watcher: watching.watcher,
    ...(watching.onError && { onError: watching.onError }),
    signal,
  });
  assertRoutes(proxy.pool.slots, config.routes);
  if (proxy.facts.missing !== null && config.purpose !== "train")
    say(`alidade: recording text only, nothing of it can be trained: ${proxy.facts.missing}`);
  for (const note of policyNotes(config, proxy)) say(`alidade: ${note}`);
  const harness = harnessFor(command);
  const { session, key } = await proxy.openSession({
    ...sessionOptionsOf(config),
    relay,
    harness: harness?.name ?? null,
  });

  const belongings = { run_id: session.id, owner: await currentOwner(), lease: Date.now() + homeMs };
  const folder = await ownedFolder(temporary.home, belongings);
  const home = join(folder, "home");
  try {
    await mkdir(home);
    const configured = harness?.configure({
      baseUrl: proxy.url,
      apiKey: key,
      model: config.model ?? proxy.facts.models[0] ?? "model",
      home,
      workdir: process.cwd(),
      contextWindow: proxy.facts.max_model_len,
    });
    for (const [path, content] of Object.entries(configured?.files ?? {})) {
      await mkdir(dirname(join(home, path)), { recursive: true });
      await writeFile(join(home, path), content, { mode: 0o600 });
    }
    const exitCode = await run(
      command,
      { ...terminal().env, ...usualVariables(proxy.url, key), ...(configured ? { HOME: home, ...configured.env } : {}) },
      signal,
    );
    await proxy.pool.watch.recheck(signal);
    const trajectories = await endedTrajectories(proxy, session.id, exitCode, harness?.name ?? null);
    const file = await keep(out, trajectories);
    const calls = trajectories.reduce((sum, { fidelity }) => sum + fidelity.calls, 0);
    const error = calls > 0 ? null : noCallSeen(command, session.lastFailure?.error.message ?? null);
    if (flags.json) {
      const sessions = trajectories.map(({ session_id, rollout_id, fidelity }) => ({ session_id, rollout_id, fidelity }));
      const said = { session_id: session.id, calls, exit_code: exitCode, trajectories: file, sessions };
      print(JSON.stringify({ ...said, ...(error && { error: error.toJSON() }) }));
    } else if (error) say(`alidade: ${error.message}`);
    else for (const trajectory of trajectories) sayRecorded(trajectory, file, out);
    return error && exitCode === 0 ? 1 : exitCode;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * One of each session that got a call: calls that name a rollout of their own are in sessions of their own. The session of
 * the key stands for a program without a call.
 */
async function endedTrajectories(proxy: HarnessProxy, own: string, exitCode: number, harness: string | null): Promise<Trajectory[]> {
  const trajectories: Trajectory[] = [];
  for (const session of proxy.sessions.all()) {
    await session.seal(`the program ended with exit code ${exitCode}`);
    const ended = { status: "recorded", harness: { name: harness, version: null, config_hash: null }, stop_reason: "exited" } as const;
    trajectories.push(await proxy.trajectory(session.id, ended));
  }
  const called = trajectories.filter(({ fidelity }) => fidelity.calls > 0);
  return called.length > 0 ? called : trajectories.filter(({ session_id }) => session_id === own);
}

function sayRecorded({ session_id, rollout_id, fidelity }: Trajectory, file: string, out: string): void {
  const unknown = isCounted(fidelity) ? "" : ", and an unknown number more";
  const figures = `${fidelity.calls} calls, ${fidelity.sampled_tokens} sampled tokens${unknown} (${fidelity.trainable_tokens} trainable)`;
  say(`alidade: ${figures} in ${file}; \`alidade show ${rollout_id ?? session_id} --run ${out}\` prints it`);
  for (const [reason, tokens] of Object.entries(fidelity.excluded))
    say(`  ${tokens} tokens not trained: ${reason.replaceAll("_", " ")}${meaningOf(untrainedReasons, reason)}`);
  const leftOut = describeOmitted(fidelity.omitted);
  if (leftOut !== null) say(`  ${visibleText(leftOut)}`);
}

/** A person's program may run for weeks. After that its home is removed by `reap`, whatever boot it is of. */
const homeMs = 30 * 24 * 3600_000;

const isCounted = ({ uncounted }: Trajectory["fidelity"]): boolean => Object.keys(uncounted).length === 0;

/** Programs may be recorded into one folder at the same time: each waits until the other's line is written. */
async function keep(out: string, trajectories: readonly Trajectory[]): Promise<string> {
  const file = join(out, "trajectories.jsonl");
  await using _lock = await lockFolder(out, { waitMs: lockWaitMs });
  await using lines = await Appender.open(file);
  for (const trajectory of trajectories) await lines.append(`${JSON.stringify(trajectory)}\n`);
  return file;
}

/** Writing one line takes milliseconds; a longer lock on the folder belongs to a run. */
const lockWaitMs = 30_000;

/** `refusal`: the answer to the last refused request; null: none was refused. */
function noCallSeen(command: string[], refusal: string | null): AlidadeError {
  if (refusal !== null) return new AlidadeError("no_call_seen", `every request of ${command[0]} was refused; the last one: ${refusal}`);
  return new AlidadeError(
    "no_call_seen",
    `${command[0]} made no call through the proxy: it reads none of ${Object.keys(usualVariables("", "")).join(", ")}, or overrides them. Point it at $OPENAI_BASE_URL (or $ANTHROPIC_BASE_URL) yourself.`,
  );
}

/** The program in the terminal that we were called from; our stop signals reach it by its process group as well. */
async function run(command: string[], env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<number> {
  const [file, ...args] = command as [string, ...string[]];
  const { stdout, stderr } = terminal();
  const child = spawn(file, args, { stdio: ["inherit", stdout.fd ?? "pipe", stderr.fd ?? "pipe"], env });
  child.stdout?.pipe(stdout, { end: false });
  child.stderr?.pipe(stderr, { end: false });
  const stop = (): void => void child.kill("SIGTERM");
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once("error", (error: NodeJS.ErrnoException) =>
        reject(
          new AlidadeError(
            "config_invalid",
            error.code === "ENOENT" ? `there is no program "${file}" on the PATH` : `cannot start ${file}: ${error.message}`,
            { cause: error, param: "command" },
          ),
        ),
      );
      child.once("close", (code, killedBy) => resolve(code ?? 128 + (killedBy === null ? 0 : constants.signals[killedBy])));
    });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
