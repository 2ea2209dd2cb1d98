/** The contract of sandbox backends finds each way to break it. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { messageOf } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { sandboxContract } from "../../sandboxes/contract.ts";
import { backends } from "../../sandboxes/registry.ts";
import type { ExecOptions, Sandbox, SandboxBackend, SandboxSpec } from "../../sandboxes/sandbox.ts";

const own = backends.find(({ name }) => name === "process") as SandboxBackend;

type Break = (sandbox: Sandbox, spec: SandboxSpec) => Partial<Sandbox>;

/** The process sandbox, with members of each sandbox replaced. */
function brokenBy(broken: Break, over: Partial<SandboxBackend> = {}): SandboxBackend {
  const create: SandboxBackend["create"] = async (spec, signal) => {
    const sandbox = await own.create(spec, signal);
    const { id, facts } = sandbox;
    return {
      ...{ id, facts },
      path: (inside) => sandbox.path(inside),
      exec: (argv, options) => sandbox.exec(argv, options),
      writeFiles: (files, folder) => sandbox.writeFiles(files, folder),
      changes: (paths, options) => sandbox.changes(paths, options),
      putEntries: (entries) => sandbox.putEntries(entries),
      readFiles: (folder, bounds) => sandbox.readFiles(folder, bounds),
      openDoor: (onConnection, port) => sandbox.openDoor(onConnection, port),
      connect: (service, port, signal) => sandbox.connect(service, port, signal),
      start: (service, argv, signal) => sandbox.start(service, argv, signal),
      freeze: (next) => sandbox.freeze(next),
      [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
      ...broken(sandbox, spec),
    };
  };
  return { ...own, create, ...over };
}

/** Runs commands without some of what they were given. */
const withoutOption =
  (...names: (keyof ExecOptions)[]): Break =>
  (sandbox) => ({
    exec: (argv, options = {}) =>
      sandbox.exec(argv, Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(name as keyof ExecOptions)))),
  });

const throwing = (): never => {
  throw new Error("not built");
};

const unreleased: Sandbox[] = [];
after(() => Promise.all(unreleased.map((sandbox) => sandbox[Symbol.asyncDispose]())));

/** What is broken, a word of the statement that must find it, and the backend. */
const defects: [string, string, SandboxBackend][] = [
  ["a door that throws", "arrives here", brokenBy(() => ({ openDoor: throwing }))],
  ["changes that throw", "changes are told", brokenBy(() => ({ changes: throwing }))],
  ["changes that tell nothing", "changes are told", brokenBy(() => ({ changes: async function* () {} }))],
  ["putEntries that throws", "put into another one", brokenBy(() => ({ putEntries: throwing }))],
  [
    "putEntries that puts nothing",
    "put into another one",
    brokenBy(() => ({ putEntries: async (all) => void (await Array.fromAsync(all)) })),
  ],
  ["variables that are ignored", "the variables of its sandbox", brokenBy(withoutOption("env"))],
  ["a folder that is ignored", "starts in the workdir", brokenBy(withoutOption("cwd"))],
  ["an input that is ignored", "reads its input", brokenBy(withoutOption("stdin"))],
  ["an end of output that is ignored", "the end is kept", brokenBy(withoutOption("keep_output"))],
  [
    "a time limit that is ignored",
    "takes too long",
    brokenBy((sandbox) => ({
      exec: (argv) => sandbox.exec(argv, { timeout_ms: 900 }).then((result) => ({ ...result, timed_out: false })),
    })),
  ],
  ["a freeze that ends nothing", "after freeze", brokenBy(() => ({ freeze: async () => undefined }))],
  [
    "a user that is ignored behind a claim of isolation",
    "as the user that it names",
    { ...brokenBy(() => ({})), capabilities: { ...own.capabilities, isolation: "container" } },
  ],
  [
    "a variable of this process in each command",
    "none of this process",
    brokenBy((sandbox) => ({
      exec: (argv, options) => sandbox.exec(argv, { ...options, env: { NODE_TEST_CONTEXT: "x", ...options?.env } }),
    })),
  ],
  [
    "an isolation that its facts do not say",
    "its facts name",
    brokenBy((sandbox) => ({ facts: { ...sandbox.facts, isolation: "container" } })),
  ],
  [
    "a signal that is ignored",
    "its signal fires",
    brokenBy(() => ({}), { create: (spec) => own.create(spec, AbortSignal.timeout(60_000)) }),
  ],
  ["a room of nothing", "in MiB", brokenBy(() => ({}), { takes: () => ({ memory_mb: 0, disk_mb: 0 }) })],
  [
    "a release that releases nothing",
    "that is released",
    brokenBy((sandbox) => ({ [Symbol.asyncDispose]: async () => void unreleased.push(sandbox) })),
  ],
];

/** Those of the statements with this word that do not hold, with the reason. */
async function notHolding(backend: SandboxBackend, word: string, signal: AbortSignal): Promise<string[]> {
  const context = { run_id: `broken${process.pid}`, owner: await currentOwner(), signal };
  const tried = sandboxContract.filter(({ says }) => says.includes(word));
  assert.ok(tried.length > 0, `no statement says "${word}"`);
  const results = tried.map(async ({ says, check }) => {
    const reason = await Promise.resolve(check(backend, context)).then(() => null, messageOf);
    return reason === null ? [] : [`${says}: ${reason}`];
  });
  return (await Promise.all(results)).flat();
}

test("a backend that passes everything on keeps the contract", { timeout: 300_000 }, async (t) => {
  assert.deepEqual(
    await notHolding(
      brokenBy(() => ({})),
      "",
      t.signal,
    ),
    [],
  );
});

for (const [what, word, backend] of defects)
  test(`the contract finds ${what}`, { timeout: 300_000 }, async (t) => {
    assert.equal((await notHolding(backend, word, t.signal)).length, 1);
  });

test("the contract has some 25 statements, each once", () => {
  assert.ok(sandboxContract.length >= 25, String(sandboxContract.length));
});
