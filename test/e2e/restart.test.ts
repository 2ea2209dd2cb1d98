/**
 * kill -9 of the proxy under a real harness, and another one on the same port and folder: the harness goes on, what was
 * acknowledged is there, and a turn that was sampled and not delivered is given again instead of sampled again.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LogLine } from "../../base/schema/session-log.ts";
import { harnessNamed } from "../../harnesses/registry.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { verifyTrajectory } from "../../reconstruct/verify.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { type RunningCli, startCli } from "../fakes/processes/cli.ts";
import { startFaultRelay } from "../fakes/proxies/fault-relay.ts";
import { startRecordingRelay } from "../fakes/proxies/recording-relay.ts";
import { installedPack } from "../harness/installed-pack.ts";
import { runCommand, temporaryPlace, writeBelow } from "../harness/run-harness.ts";
import { type PersistentHarness, persistent } from "../harness/with-retries.ts";
import { quietPort } from "../quiet-port.ts";
import { scriptOf, struck, turnOf, turns } from "./faulty-run.ts";

/** Two starts of the command line, a harness, and its patience before a retry; on a loaded machine ten times that. */
const timeout = 180_000;

/** Gemini CLI does not ask again when an answer that had begun breaks off. */
const harnesses = (Object.keys(persistent) as PersistentHarness[]).filter((harness) => harness !== "gemini-cli");

for (const harness of harnesses) {
  test(`${harness} goes on when the proxy is killed while a turn is sampled`, { timeout }, async (t) => {
    await using run = await servedRun(t, harness);
    if (run === null) return;
    const working = run.start(run.url);
    await run.engineHasStruckTurn();
    await run.restart();
    run.letSample();
    const { ended, trajectory, report, entries } = await run.result(working);
    assert.equal(ended.exit_code, 0, `${ended.stdout}\n${ended.stderr}`);
    assert.deepEqual(
      trajectory.calls.map((call) => call.outcome),
      ["delivered", "failed", "delivered", "delivered"],
    );
    const [, killed, repeated] = entries.filter((entry) => entry.type === "call_begun");
    assert.equal(repeated?.retry_of, killed?.call_id);
    assert.deepEqual([report.mismatches, report.calls], [[], turns]);
  });

  test(`${harness} is given the turn that was sampled before the proxy was killed`, { timeout }, async (t) => {
    await using run = await servedRun(t, harness);
    if (run === null) return;
    const restarted = Promise.withResolvers<void>();
    let struckRequests = 0;
    await using front = await startFaultRelay(run.url, async () => {
      // The harness's requests come in order: turn by turn, and one more for the turn whose answer breaks off.
      const nth = struckRequests++ - struck;
      if (nth === 0) return { type: "drop", seen: "" };
      if (nth === 1) await restarted.promise;
      return null;
    });
    const working = run.start(front.url);
    await run.engineHasStruckTurn();
    await run.logged((entry) => entry.type === "answered" && entry.delivery === "cut");
    run.letSample();
    await run.logged((entry) => entry.type === "call_finished" && JSON.stringify(entry.message).includes(`Step ${struck}`));
    await run.restart();
    restarted.resolve();
    const { ended, trajectory, report, entries } = await run.result(working);
    assert.equal(ended.exit_code, 0, `${ended.stdout}\n${ended.stderr}`);
    assert.deepEqual(
      trajectory.calls.map((call) => call.outcome),
      ["delivered", "delivered", "delivered"],
    );
    assert.equal(entries.filter((entry) => entry.type === "replayed" && entry.delivery === "complete").length, 1);
    assert.equal(run.sampled(), turns, "each turn was sampled once");
    assert.deepEqual([report.mismatches, report.calls, report.unclaimed_exchanges], [[], turns, 0]);
  });
}

type Served = { url: string; session_id: string; key: string };

/** `alidade serve` as a process of its own, in front of an engine that holds the struck turn until it is let go. */
async function servedRun(t: TestContext, harness: PersistentHarness) {
  const pack = await installedPack(t, harnessNamed(harness));
  if (pack === null) return null;
  await using scope = new AsyncDisposableStack();
  const out = await mkdtemp(join(tmpdir(), "alidade-restart-"));
  scope.defer(() => rm(out, { recursive: true, force: true }));
  const hold = Promise.withResolvers<void>();
  const engine = scope.use(
    await ScriptedEngine.start((request, index) => ({
      ...scriptOf(harness, request, index),
      ...(turnOf(request.messages) === struck && !request.probe && { beforeEnd: hold.promise }),
    })),
  );
  const witness = scope.use(await startRecordingRelay(engine.url));
  const place = scope.use(await temporaryPlace({ "notes.txt": "nothing\n" }));
  const store = new DiskStore(join(out, "serve", "sessions"));
  const port = String(await quietPort());
  let running: RunningCli = serve(witness.url, out, port);
  scope.defer(() => running[Symbol.asyncDispose]());
  const served = await announced(running);
  const entries = (): Promise<LogLine[]> => store.read(served.session_id);
  const release = scope.move();
  return {
    url: served.url,
    letSample: () => hold.resolve(),
    sampled: () => engine.requests.length,
    start(url: string) {
      const { home, workdir } = place;
      const context = { instruction: "Work.", baseUrl: url, apiKey: served.key, model: "scripted", home, workdir, pack: pack.folder };
      const launch = persistent[harness].launch({ ...context, contextWindow: 100_000 }, null);
      return writeBelow(home, launch.files).then(() =>
        runCommand(launch.argv, { cwd: workdir, env: { PATH: "/usr/bin:/bin", ...launch.env }, signal: t.signal }),
      );
    },
    engineHasStruckTurn: () => running.until(() => engine.requests.some((request) => turnOf(request.messages) === struck)),
    logged: (holds: (entry: LogLine) => boolean) => running.until(async () => (await entries()).some(holds)),
    async restart(): Promise<void> {
      await running.kill("SIGKILL");
      running = serve(witness.url, out, port);
      assert.equal((await announced(running)).url, served.url);
    },
    async result(working: ReturnType<typeof runCommand>) {
      const ended = await working;
      assert.equal((await running.kill("SIGTERM")).code, 0, running.stderr);
      const log = await entries();
      const trajectory = reconstruct(log, {});
      return { ended, entries: log, trajectory, report: verifyTrajectory(trajectory, witness.exchanges) };
    },
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}

function serve(engineUrl: string, out: string, port: string): RunningCli {
  return startCli(["serve", "--engine", engineUrl, "--out", out, "--port", port, "--control-port", "0", "--json"]);
}

async function announced(running: RunningCli): Promise<Served> {
  await running.until(() => running.stdout.includes("\n"));
  return JSON.parse(running.stdout) as Served;
}
