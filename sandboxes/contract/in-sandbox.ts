/** What the statements of the contract share: a sandbox of the backend's own base image. */
import type { ContractCheck } from "../../base/host/plug-ins.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import type { Sandbox, SandboxBackend, SandboxSpec } from "../sandbox.ts";

export type SandboxContext = { owner: string; run_id: string; signal: AbortSignal };
export type SandboxCheck = ContractCheck<SandboxBackend, SandboxContext>;

/** A statement about one fresh sandbox. */
export function ofSandbox(
  says: string,
  body: (sandbox: Sandbox, backend: SandboxBackend) => Promise<void>,
  more: Partial<SandboxSpec> = {},
): SandboxCheck {
  return { says, check: (backend, context) => inSandbox(backend, context, (sandbox) => body(sandbox, backend), more) };
}

export async function inSandbox(
  backend: SandboxBackend,
  context: SandboxContext,
  body: (sandbox: Sandbox, spec: SandboxSpec) => Promise<void>,
  more: Partial<SandboxSpec> = {},
): Promise<void> {
  await backend.prepare([Environment.parse({})], { signal: context.signal });
  const spec = specOf(context, more);
  await using sandbox = await backend.create(spec, context.signal);
  await body(sandbox, spec);
}

export function specOf({ run_id, owner }: SandboxContext, more: Partial<SandboxSpec> = {}): SandboxSpec {
  const limits = Limits.parse({ memory_mb: 256, disk_mb: 64, agent_seconds: 60, grade_seconds: 60 });
  return { run_id, owner, image: null, workdir: "/work", mounts: {}, env: {}, limits, ...more };
}

/** The output of a shell's line that ends with 0. */
export async function said(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, stderr, exit_code } = await sandbox.exec(["sh", "-c", script], { timeout_ms: 30_000 });
  if (exit_code !== 0) throw new Error(`${JSON.stringify(script)} ended with ${exit_code}: ${stderr}`);
  return stdout;
}
