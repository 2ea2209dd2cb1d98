/** A service's listener over a real ledger and a real proxy. */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { harnessNamed } from "../../../harnesses/registry.ts";
import type { TlsPair } from "../../../proxy/index.ts";
import { FolderBlobs } from "../../../service/blobs/index.ts";
import { ServiceBounds } from "../../../service/callers/bounds.ts";
import { type Caller, callerOf } from "../../../service/callers/caller.ts";
import { Callbacks, roles, ServiceListener } from "../../../service/index.ts";
import { type Demands, type Ledger, SqliteLedger } from "../../../service/ledger/index.ts";
import { ControlFollower } from "../../../service/nodes/control-follower.ts";
import { faultsOfMachine } from "../../../service/nodes/index.ts";
import { inlineTask } from "../../../tasks/inline-task.ts";
import { SetPages } from "../../../view/sets/index.ts";
import { scratchFolder } from "../machine/scratch-folder.ts";
import { proxyAt } from "./proxy-at.ts";

const scratch = scratchFolder("service");
let places = 0;
export const serviceTask = { task_id: "t", instruction: "Do it.", grader: { kind: "script", command: ["true"] } };

/** Until the test ends, or `close`. Tokens: `all`, one by the name of each role, and `team-a` and `team-b` with a namespace of that name. */
export async function serviceAt(
  t: TestContext,
  {
    path = join(scratch, `${places++}.sqlite`),
    weights = "default",
    tls,
    setWebhooks = null,
    demands = {},
    known,
    open = async (at) => SqliteLedger.open(at),
  }: {
    path?: string;
    weights?: string;
    tls?: TlsPair | undefined;
    setWebhooks?: { mayBePrivate: boolean } | null;
    demands?: Demands;
    /** A task that may be named. */
    known?: { task_id: string } & Record<string, unknown>;
    open?: (path: string) => Promise<Ledger>;
  } = {},
) {
  const scope = new AsyncDisposableStack();
  t.after(() => scope.disposeAsync());
  const { proxy } = scope.use(await proxyAt(() => ({ text: "hi" })));
  const slot = proxy.pool.slots[0];
  assert.ok(slot);
  slot.engine.weightVersion = async () => weights;
  const ledger = scope.use(await open(path));
  const notes: string[] = [];
  const lease = await ledger.join({ name: "n", slots: 9 });
  const over = new AbortController();
  const follower = new ControlFollower(proxy, ledger, (text) => notes.push(text), over.signal);
  await follower.joined(lease);
  const following = follower.follow();
  scope.defer(async () => {
    over.abort();
    await following;
  });
  const blobs = new FolderBlobs(`${path}-blobs`);
  const tokens = [
    { token: "all", roles, namespace: null },
    ...roles.map((role) => ({ token: role, roles: [role], namespace: null })),
    ...["team-a", "team-b"].map((team) => ({ token: team, roles, namespace: team })),
  ];
  const parts = {
    ledger,
    blobs,
    engines: () => proxy.pool.slots.map((slot) => slot.describe()),
    nodeFaults: (signal: AbortSignal) => faultsOfMachine({ proxy }, signal),
    taskOf: (given: unknown) => inlineTask(given === known?.task_id ? known : given),
    namedTasks: async () => [],
    harnessNamed: async (name: string | null) => harnessNamed(name ?? "pi"),
    setWebhooks,
    demands,
    pages: scope.use(new SetPages({ ledger, blobs }, scratch)),
    polar: scope.use(new Callbacks(ledger, true, (text) => notes.push(text), 1)),
  };
  const listener = scope.use(new ServiceListener(parts, tokens, "test", tls));
  const url = await listener.listen("127.0.0.1", 0);
  const call = async (method: string, path: string, body?: unknown, token = "all") => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isLines = response.headers.get("content-type")?.includes("ndjson");
    return {
      status: response.status,
      body: isLines
        ? text
            .trim()
            .split("\n")
            .map((line) => line && JSON.parse(line))
        : JSON.parse(text),
    };
  };
  return { path, url, proxy, ledger, blobs, listener, call, lease, slot, notes, close: () => scope.disposeAsync() };
}

/** Who asks with a token that sees all sets, for a route that is called without a listener. */
export const callerOfAll = (ledger: Ledger): Caller => callerOf({ token: "all", roles, namespace: null }, ledger, new ServiceBounds(1));

/** A body of POST …/groups. */
export const serviceGroups = (...keys: string[]) => keys.map((group_key) => JSON.stringify({ group_key, task: serviceTask })).join("\n");
