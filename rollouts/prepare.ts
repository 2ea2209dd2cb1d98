/** INIT: a sandbox with the task in it, a session of its own, and the door between them. */
import { AlidadeError, messageOf } from "../base/errors.ts";
import type { TreeFile } from "../base/files/file-tree.ts";
import type { WorkLayer } from "../base/files/layer.ts";
import { Deadline } from "../base/host/deadline.ts";
import { untilAborted } from "../base/host/until-aborted.ts";
import type { NewSession } from "../base/schema/session-spec.ts";
import { deliveredFiles, deliveredSandbox, keepSetUp, readServicesBefore } from "../graders/index.ts";
import type { Harness, HarnessContext, HarnessLaunch } from "../harnesses/index.ts";
import { containerPlatform, ensureOwnPack, ensurePack, hostPlatform, type Pack } from "../harnesses/index.ts";
import { openTools, type Session, type ToolRelay } from "../proxy/index.ts";
import type { Door, Sandbox, SandboxBackend, SandboxSpec } from "../sandboxes/index.ts";
import { beginStep, conceal, DesktopWatch, nodeInside, nodeMount, setUp, specOf } from "../sandboxes/index.ts";
import { type NetworkRules, type OpenNetwork, openNetwork } from "../sandboxes/network/index.ts";
import { assertTakesTask } from "./accepted/index.ts";
import { deliverSkills } from "./deliver-skills.ts";
import type { RolloutPlan } from "./rollout-plan.ts";
import type { RunSetup } from "./run-setup.ts";

export type PreparedRollout = AsyncDisposable & {
  sandbox: Sandbox;
  session: Session;
  door: Door;
  /** What its commands see of the network that its task allows. */
  network: OpenNetwork;
  /** The task's servers of tools; null where it has none. */
  tools: ToolRelay | null;
  /** Makes another sandbox of the task, with new services and without an agent. */
  another(signal: AbortSignal): Promise<Sandbox>;
  /** Opens it again after it was closed. */
  reopenNetwork(): Promise<void>;
  launch: HarnessLaunch;
  /** Writes what the harness starts with once more, for another instruction. */
  launchFor(instruction: string, signal: AbortSignal, dialogue?: HarnessContext["dialogue"]): Promise<HarnessLaunch>;
  /** The model's name that the harness gets. */
  model: string;
  /** null: the harness needs nothing installed. */
  pack: Pack | null;
  /** What was put into the workdir. */
  delivered: TreeFile[];
  /** What the task's set-up left; null where it has none. */
  setUp: WorkLayer | null;
  /** What graders read of its services, before the agent; null where they read nothing. */
  servicesBefore: WorkLayer | null;
};

/** The backend, or what hands out its sandboxes. */
type SandboxSource = Pick<SandboxBackend, "create">;

const home = "/home/agent";
/** Inside a sandbox the connection is the key; this one is what SDKs want to see, and it opens nothing. */
const dummyKey = "sk-local";

/**
 * Everything made here is released by the returned scope, or at once when a step fails. What cannot be released is said
 * and left to the reaper: the rollout is what it is.
 */
export async function prepare(
  setup: RunSetup,
  plan: RolloutPlan,
  rules: NetworkRules,
  signal: AbortSignal,
  sandboxes: SandboxSource = setup.backend,
): Promise<PreparedRollout> {
  const { init_seconds } = plan.task.limits;
  using limit = new Deadline(init_seconds * 1000);
  const within = AbortSignal.any([signal, limit.signal]);
  try {
    return await soonAfterAbort(prepareWithin(setup, plan, sandboxes, rules, within), within);
  } catch (error) {
    if (!limit.signal.aborted || signal.aborted) throw asFullDisk(error);
    const why = error instanceof AlidadeError && error.code === "tool_service_failed" ? `: ${error.message}` : "";
    const message = `the sandbox of ${plan.rollout_id} was not ready after ${init_seconds} s (limits.init_seconds)${why}`;
    throw new AlidadeError("sandbox_unavailable", message, { cause: error });
  }
}

/** A full disk passes, so the rollout waits for space (run-rollout.ts). A container engine says it in words only. */
function asFullDisk(error: unknown): unknown {
  const isTheTask = error instanceof AlidadeError && error.owner !== "infrastructure";
  if (isTheTask || !/no space left on device|disk quota exceeded/i.test(messageOf(error))) return error;
  return new AlidadeError("store_full", `no space left for a sandbox (${messageOf(error)}): free some space`, { cause: error });
}

/** What a sandbox takes to go on a loaded machine. An engine that needs longer stalls, and may for ever. */
const releaseMs = 10_000;

/** Waits for the work, and when it is aborted for what it releases, but not for long. */
async function soonAfterAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    timer = setTimeout(() => late.abort(signal.reason), releaseMs);
  };
  signal.addEventListener("abort", wait, { once: true });
  try {
    return await untilAborted(work, late.signal);
  } finally {
    signal.removeEventListener("abort", wait);
    clearTimeout(timer);
  }
}

async function prepareWithin(
  setup: RunSetup,
  plan: RolloutPlan,
  sandboxes: SandboxSource,
  rules: NetworkRules,
  signal: AbortSignal,
): Promise<PreparedRollout> {
  const { task, harness } = plan;
  assertTakesTask(task, harness);
  const pack = await packOf(setup, harness, signal);
  await using scope = new AsyncDisposableStack();
  const sandbox = scope.use(await sandboxes.create(await agentSpec(setup, plan, pack), signal));
  const delivered = await deliveredFiles(task);
  await untilAborted(sandbox.writeFiles(delivered), signal);
  await setUp(sandbox, task, rules, signal);
  const left = await keepSetUp(sandbox, task, delivered, setup.folder.blobs, signal);
  await conceal(sandbox, task, signal);
  await deliverSkills(sandbox, task, harness, home, signal);
  const servicesBefore = await readServicesBefore(sandbox, task, setup.folder.blobs, { signal, graders: setup.graders });

  const spec: Partial<NewSession> = {
    ...plan.session,
    task_id: task.task_id,
    group_id: plan.group_id,
    sample_index: plan.sample_index,
    rollout_id: plan.rollout_id,
    attempt: plan.attempt,
    harness: harness.name,
    sandboxed: true,
    known_classes: [...harness.makes],
    dialects: harness.dialects && [...harness.dialects],
    budgets: { ...plan.session.budgets, ...budgetsOf(task) },
    relay: "buffered",
    context_window: plan.replay ? plan.replay.context_window : contextOf(setup),
    forked_from: plan.replay?.forked_from ?? null,
  };
  const { session, model } = await openedSession(setup, plan, spec);
  scope.defer(() => setup.proxy.sessions.close(session, "the rollout is over"));
  const door = scope.use(await sandbox.openDoor((socket) => setup.proxy.attach(session, socket)));
  const openIts = () => openNetwork(sandbox, "agent", task.environment.network, rules);
  const network = scope.use(await openIts());

  const tools = await openedTools(setup, sandbox, session, task, signal);
  if (tools) scope.use(tools);
  if (task.environment.display !== undefined) scope.use(watchedScreen(session, sandbox, task.environment.display.service));

  const [first] = task.steps ?? [];
  if (first !== undefined) await beginStep(sandbox, task, first, network.env, signal);
  const launchFor: PreparedRollout["launchFor"] = async (instruction, within, dialogue) => {
    const launch = harness.launch({
      instruction,
      baseUrl: door.url,
      apiKey: dummyKey,
      model,
      home: sandbox.path(home),
      workdir: sandbox.path(task.environment.workdir),
      pack: sandbox.path(packInside(harness)),
      contextWindow: session.spec.context_window,
      ...(dialogue && { dialogue }),
      ...(task.environment.skills !== undefined && { skills: true }),
      ...(tools && { tools: tools.servers.map((name) => ({ name, url: `${door.url}/mcp/${name}` })) }),
    });
    const files = Object.entries(launch.files).map(([path, content]) => ({ path, content: Buffer.from(content), mode: 0o600 }));
    if (files.length > 0) await untilAborted(sandbox.writeFiles(files, home), within);
    return launch;
  };
  const launch = await launchFor((first ?? task).instruction, signal, task.simulated_user && "begins");
  signal.throwIfAborted();

  const release = scope.move();
  const prepared: PreparedRollout = {
    sandbox,
    session,
    door,
    network,
    tools,
    another: (within) => deliveredSandbox(task, setup.backend, { run_id: setup.run_id, owner: setup.owner, rules }, within),
    async reopenNetwork() {
      prepared.network = release.use(await openIts());
    },
    launch,
    launchFor,
    model,
    pack,
    delivered,
    setUp: left,
    servicesBefore,
    [Symbol.asyncDispose]: () =>
      release.disposeAsync().catch((error: unknown) => {
        setup.onProgress({ type: "note", text: `${plan.rollout_id}: what it leaves could not all be cleared away: ${messageOf(error)}` });
      }),
  };
  return prepared;
}

/** A session of its own, or that of the attempt before; and the model that the harness is told of, as it was told before. */
async function openedSession(
  { proxy }: RunSetup,
  { replay, resume, attempt, rollout_id, group_id, sample_index }: RolloutPlan,
  spec: Partial<NewSession>,
): Promise<{ session: Session; model: string }> {
  const modelOf = ({ spec }: Session): string | null => spec.model ?? proxy.facts.models[0] ?? null;
  if (resume?.how === "replay") {
    const { session, recording } = await proxy.resumeSession(resume.session_id, { attempt, place: { rollout_id, group_id, sample_index } });
    return { session, model: session.spec.model ?? recording.calls[0]?.call.begun.model ?? modelOf(session) ?? "model" };
  }
  const { session } = await proxy.openSession(spec, "caller");
  session.replay = replay?.open() ?? null;
  return { session, model: replay?.model ?? modelOf(session) ?? "model" };
}

/** Lets an operator see the screen until the rollout's sandbox is disposed. */
function watchedScreen(session: Session, sandbox: Sandbox, service: string): AsyncDisposable {
  const screen = new DesktopWatch(sandbox, service);
  session.screen = screen;
  return {
    async [Symbol.asyncDispose]() {
      session.screen = null;
      await screen[Symbol.asyncDispose]();
    },
  };
}

/** Asked for their lists before the harness begins: one that starts late is then late for no harness. */
async function openedTools(
  { proxy }: RunSetup,
  sandbox: Sandbox,
  session: Session,
  { environment }: RolloutPlan["task"],
  signal: AbortSignal,
): Promise<ToolRelay | null> {
  if (!environment.tools) return null;
  const tools = await openTools(session, environment.tools, sandbox, signal);
  proxy.offerTools(session, tools);
  return tools;
}

/** The harness's pack, installed where it is not there yet. Throws `pack_failed`. */
export async function packOf({ backend, onProgress }: RunSetup, harness: Harness, signal: AbortSignal): Promise<Pack | null> {
  const platform = backend.capabilities.images ? containerPlatform() : hostPlatform();
  const options = { signal, progress: (text: string) => onProgress({ type: "note", text }), platform };
  if (harness.own) return ensureOwnPack(harness.own, options);
  return Object.keys(harness.packages).length === 0 ? null : ensurePack(harness, options);
}

function contextOf({ proxy }: RunSetup): number | null {
  return proxy.facts.max_model_len;
}

function packInside(harness: Harness): string {
  return `/opt/alidade/${harness.name}`;
}

/** The agent's sandbox, by which a warm one is found too. */
export async function agentSpec(setup: RunSetup, { task, harness }: RolloutPlan, pack: Pack | null): Promise<SandboxSpec> {
  return specOf(task, setup, { mounts: await mountsOf(harness, pack) });
}

async function mountsOf(harness: Harness, pack: Pack | null): Promise<Record<string, string>> {
  return { [nodeInside]: await nodeMount(), ...(pack ? { [packInside(harness)]: pack.folder } : {}) };
}

function budgetsOf({ limits }: RolloutPlan["task"]) {
  return {
    ...(limits.max_turns === undefined ? {} : { max_turns: limits.max_turns }),
    ...(limits.max_sampled_tokens === undefined ? {} : { max_sampled_tokens: limits.max_sampled_tokens }),
  };
}
