/** The commands of docs/service/nodes.md for a machine without a Postgres, as they stand, by a user who is not root. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { PostgresLedger } from "../../../../service/ledger/index.ts";
import { postgresPrograms, unprivileged } from "../../../fakes/machine/postgres.ts";
import { until } from "../../../fakes/machine/until.ts";
import { root } from "../../../fakes/processes/cli.ts";
import { need } from "../../../needs.ts";
import { quietPort } from "../../../quiet-port.ts";

const password = "of-this-test";
/** `initdb` writes its files to the disk, beside other tests. */
const patienceMs = 120_000;

/** The lines of the block with `initdb`; the last one runs the server. */
function commands(): string[] {
  const [, block = ""] = /^```sh\n(initdb [\s\S]*?)^```$/m.exec(readFileSync(join(root, "docs/service/nodes.md"), "utf8")) ?? [];
  return block.trim().split("\n");
}

function start(lines: readonly string[], folder: string, port: number): ChildProcess {
  // A test listens on loopback only. `exec`: a signal is for the server.
  const script = lines.map((line, at) => (at === lines.length - 1 ? `exec ${line}` : line)).join(" &&\n");
  return spawn("bash", ["-c", script.replace("'*'", "127.0.0.1")], {
    ...unprivileged,
    cwd: folder,
    env: { PATH: `${postgresPrograms()}:${process.env.PATH}`, PGPASSWORD: password, PGPORT: String(port) },
    stdio: "ignore",
  });
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, "exit");
  server.kill("SIGINT");
  await ended;
}

async function isRefused(url: string): Promise<boolean> {
  return PostgresLedger.open(url, "service").then(
    async (ledger) => {
      await ledger[Symbol.asyncDispose]();
      return false;
    },
    (error: unknown) => /password authentication failed/.test(String(error)),
  );
}

test("the commands for a machine without a Postgres make a database for the ledger, which the last one starts again", async (t: TestContext) => {
  if (!(await need(t, "postgres"))) return;
  const folder = await mkdtemp(join(tmpdir(), "alidade-own-pg-"));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  if (unprivileged.uid !== undefined) await chown(folder, unprivileged.uid, unprivileged.gid);
  const port = await quietPort();
  const url = (word: string) => `postgres://alidade:${word}@127.0.0.1:${port}/rollouts`;
  const lines = commands();
  assert.equal(lines.length, 4);
  for (const these of [lines, lines.slice(-1)]) {
    const server = start(these, folder, port);
    t.after(() => stop(server));
    await until(() => isRefused(url("wrong")), { ms: patienceMs });
    const ledger = await PostgresLedger.open(url(password), "service");
    await ledger[Symbol.asyncDispose]();
    await stop(server);
  }
});
