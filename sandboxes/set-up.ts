/** A task's own preparation of its sandbox, with a network of its own that is cut when it ends. */
import { AlidadeError } from "../errors.ts";
import { refusedHosts } from "../schema/refused-hosts.ts";
import type { Environment, Limits } from "../schema/task.ts";
import { type NetworkRules, openNetwork } from "./network/open-network.ts";
import type { Sandbox } from "./sandbox.ts";
import { envInside } from "./task-spec.ts";

/** What a person needs of its output. */
const tailCharacters = 1_000;

/** Runs `environment.setup` to its end. Throws `sandbox_unavailable` where it fails: a host that it needs may be down. */
export async function setUp(
  sandbox: Sandbox,
  { environment, limits }: { environment: Environment; limits: Limits },
  rules: NetworkRules,
  signal: AbortSignal,
): Promise<void> {
  const { setup, workdir } = environment;
  if (setup === null) return;
  await using network = await openNetwork(sandbox, "setup", setup.network, rules);
  const { exit_code, stdout, stderr, timed_out } = await sandbox.exec(setup.command, {
    cwd: workdir,
    env: { ...envInside(environment, sandbox), ...network.env },
    timeout_ms: limits.init_seconds * 1000,
    keep_output: "end",
    signal,
  });
  if (exit_code === 0) return;
  const how = timed_out ? `did not end within ${limits.init_seconds} s (limits.init_seconds)` : `ended with exit code ${exit_code}`;
  const said = `${stdout}\n${stderr}`.trim().slice(-tailCharacters);
  const refused = refusedHosts(rules.log.use(), "setup");
  throw new AlidadeError("sandbox_unavailable", `environment.setup ${how}: ${said || "it printed nothing"}${refused}`, {
    param: "environment.setup",
  });
}
