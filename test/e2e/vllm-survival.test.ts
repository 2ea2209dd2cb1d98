/**
 * A conversation that goes on token for token, through all that may befall a session: an answer that is lost on its way
 * to the harness, kill -9 of the proxy while vLLM samples, and a weight update between two turns.
 */
import assert from "node:assert/strict";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LogLine } from "../../base/schema/session-log.ts";
import { pi } from "../../harnesses/pi.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { verifyTrajectory } from "../../reconstruct/verify.ts";
import { type RunningCli, startCli } from "../fakes/processes/cli.ts";
import { type Fault, startFaultRelay } from "../fakes/proxies/fault-relay.ts";
import { startRecordingRelay } from "../fakes/proxies/recording-relay.ts";
import { installedPack } from "../harness/installed-pack.ts";
import { runCommand, temporaryPlace, writeBelow } from "../harness/run-harness.ts";
import { persistent } from "../harness/with-retries.ts";
import { taughtTask } from "../interop/vllm/plays.ts";
import { startVllm, type Vllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";
import { quietPort } from "../quiet-port.ts";
import { proveLogprobs } from "./prove-logprobs.ts";
import { ofTheHarness, proveContinuity } from "./prove-self-played.ts";
import { tolerance } from "./vllm-samples.ts";

const controlToken = "token-of-the-test";
/** What happens at the harness's n-th request; a request whose answer is lost comes again. */
const lostAt = 1;
const killedAt = 3;
const updatedAt = 5;

/**
 * A session is only of use where all of it happened: a free policy may give its last word before, or a call that Pi
 * rewrites, and on a crowded machine an answer may have left before it is lost, or be given before the kill.
 */
const mostSessions = 12;

test("one sequence survives a lost answer, kill -9 of the proxy and a weight update", { timeout: 600_000 }, async (t) => {
  if (!(await need(t, "vllm"))) return;
  const pack = await installedPack(t, pi);
  if (pack === null) return;
  await using vllm = await startVllm(t.signal);
  const played: string[] = [];
  while (played.length < mostSessions) {
    const { requests, log, exchanges } = await playThrough(t, vllm, pack.folder);
    const trajectory = reconstruct(log, {});
    assert.deepEqual(verifyTrajectory(trajectory, exchanges).mismatches, []);
    const { worst, tokens } = await proveLogprobs(vllm, trajectory, { tolerance, signal: t.signal });
    const delivered = trajectory.calls.filter((call) => call.outcome === "delivered");
    // What the killed proxy had begun.
    const undelivered = trajectory.calls.filter((call) => call.outcome !== "delivered");
    proveContinuity({ trajectory: { ...trajectory, calls: delivered }, entries: log }, ofTheHarness);
    const causes = delivered.slice(1).map(({ match, cause }) => cause ?? match);
    const givenAgain = log.filter((entry) => entry.type === "replayed" && entry.delivery === "complete").length;
    const happened = JSON.stringify({
      requests,
      causes,
      givenAgain,
      undelivered: undelivered.map((call) => [call.outcome, call.sampled_length]),
      worst,
      tokens,
    });
    t.diagnostic(happened);
    played.push(happened);
    const isWhole = requests > updatedAt + 1 && givenAgain === 1 && undelivered.length === 1 && causes.every((cause) => cause === "exact");
    if (!isWhole) continue;
    assert.deepEqual([undelivered[0]?.outcome, undelivered[0]?.sampled_length], ["failed", null]);
    assert.deepEqual(trajectory.fidelity.policy_versions, ["weights-7", "weights-8"]);
    assert.equal(trajectory.traces.length, 1);
    return;
  }
  assert.fail(`in none of ${mostSessions} sessions did all of it happen:\n${played.join("\n")}`);
});

/** One session of Pi behind a proxy of its own, with all that befalls it. */
async function playThrough(t: TestContext, vllm: Vllm, pack: string) {
  await using witness = await startRecordingRelay(vllm.url);
  await using served = await startServed(witness.url);
  const { session_id, key } = await served.control<{ session_id: string; key: string }>("POST", "/sessions", {
    purpose: "train",
    harness: "pi",
    continuity: "auto",
    restore: "full",
  });
  // The weights stay the same; only their name changes, and vLLM goes on calling them its default.
  const name = (step: number, fence?: string) =>
    served.control("PUT", "/policy", { ...(fence && { fence }), version: `weights-${step}`, step, engine_version: "default" });
  await name(7);
  const entries = (): Promise<LogLine[]> => served.store.read(session_id);
  const begun = async () => (await entries()).filter((entry) => entry.type === "call_begun").length;

  // Holds requests back until the server listens again. A refused request would be repeated, and `index` counts each one.
  let restarted: Promise<void> = Promise.resolve();
  await using front = await startFaultRelay(served.url, async ({ index }): Promise<Fault | null> => {
    await restarted;
    if (index === lostAt) return { type: "drop", seen: "" };
    if (index === killedAt) {
      const before = await begun();
      // What the trainer had named is gone with the process.
      restarted = served
        .restartWhen(async () => (await begun()) > before)
        .then(() => name(7))
        .then(() => undefined);
      return { type: "drop_before_headers", when: restarted };
    }
    if (index === updatedAt) {
      const { fence } = await served.control<{ fence: string }>("POST", "/pause", { mode: "drain" });
      await name(8, fence);
      await served.control("POST", "/resume", { fence });
    }
    return null;
  });

  const task = taughtTask("pi", 8);
  await using place = await temporaryPlace(task.files);
  for (const program of task.programs) await chmod(join(place.workdir, program), 0o755);
  const context = { instruction: task.instruction, baseUrl: front.url, apiKey: key, model: vllm.model, pack };
  const launch = persistent.pi.launch({ ...context, ...place, contextWindow: 32_768 }, null);
  await writeBelow(place.home, launch.files);
  const ended = await runCommand(launch.argv, {
    cwd: place.workdir,
    env: { PATH: "/usr/bin:/bin", ...launch.env },
    signal: t.signal,
  });
  assert.equal(ended.exit_code, 0, `${ended.stdout}\n${ended.stderr}`);
  return { requests: front.requests.length, log: await entries(), exchanges: witness.exchanges };
}

/** `alidade serve` as a process of its own, that can be killed and started again on its port and folder. */
async function startServed(engineUrl: string) {
  await using scope = new AsyncDisposableStack();
  const out = await mkdtemp(join(tmpdir(), "alidade-survival-"));
  scope.defer(() => rm(out, { recursive: true, force: true, maxRetries: 5 }));
  const port = String(await quietPort());
  const start = async () => {
    const args = ["serve", "--engine", engineUrl, "--out", out, "--port", port, "--control-port", "0", "--json"];
    const running = startCli(args, { env: { ALIDADE_CONTROL_TOKEN: controlToken } });
    await running.until(() => running.stdout.includes("\n"));
    return { running, said: JSON.parse(running.stdout) as { url: string; control_url: string } };
  };
  let current: { running: RunningCli; said: { url: string; control_url: string } } = await start();
  scope.defer(() => current.running[Symbol.asyncDispose]());
  const release = scope.move();
  return {
    url: current.said.url,
    store: new DiskStore(join(out, "serve", "sessions")),
    async control<Answer>(method: string, path: string, body: unknown): Promise<Answer> {
      const response = await fetch(current.said.control_url + path, {
        method,
        headers: { authorization: `Bearer ${controlToken}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
      return JSON.parse(text) as Answer;
    },
    async restartWhen(holds: () => Promise<boolean>): Promise<void> {
      await current.running.until(holds);
      await current.running.kill("SIGKILL");
      current = await start();
    },
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}
