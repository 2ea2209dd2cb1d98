import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { registryLogin } from "../../../../sandboxes/docker/images/registry-login.ts";

/** What `registryLogin` makes of a config.json, with helpers as shell scripts. */
async function loginsOf(t: TestContext, config: unknown, helpers: Record<string, string> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "alidade-login-"));
  t.after(() => rm(folder, { recursive: true }));
  if (config !== undefined) await writeFile(join(folder, "config.json"), typeof config === "string" ? config : JSON.stringify(config));
  for (const [name, script] of Object.entries(helpers))
    await writeFile(join(folder, `docker-credential-${name}`), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const env = { DOCKER_CONFIG: folder, PATH: `${folder}:${process.env.PATH}` };
  return (host: string) => registryLogin(host, env, t.signal);
}

const auth = Buffer.from("me:a:secret").toString("base64");

test("a login is read from the file, by host or address, Docker's own registry by its old one", async (t) => {
  const login = await loginsOf(t, {
    auths: {
      "https://index.docker.io/v1/": { auth },
      "https://ghcr.io/v2": { username: "me", password: "other" },
      "x.test:5000": { identitytoken: "token" },
      empty: {},
      constructor: { auth },
    },
  });
  const hub = { username: "me", password: "a:secret", serveraddress: "https://index.docker.io/v1/" };
  assert.deepEqual(await login("docker.io"), { auth: hub, problem: null });
  assert.deepEqual((await login("ghcr.io")).auth, { username: "me", password: "other", serveraddress: "ghcr.io" });
  assert.deepEqual((await login("x.test:5000")).auth, { identitytoken: "token", serveraddress: "x.test:5000" });
  for (const host of ["empty", "x.test", "toString"]) assert.deepEqual(await login(host), { auth: null, problem: null }, host);
});

test("the helper of a host is asked first, then the store, and a helper that knows no login is no problem", async (t) => {
  const answer = (user: string, secret: string) =>
    `read -r server; echo "{\\"ServerURL\\":\\"$server\\",\\"Username\\":\\"${user}\\",\\"Secret\\":\\"${secret}-$server\\"}"`;
  const config = { auths: { "a.test": { auth } }, credHelpers: { "a.test": "own", "none.test": "none" }, credsStore: "store" };
  const login = await loginsOf(t, config, {
    own: answer("me", "own"),
    store: answer("<token>", "stored"),
    none: "echo credentials not found in native keychain; exit 1",
  });
  assert.deepEqual((await login("a.test")).auth, { username: "me", password: "own-a.test", serveraddress: "a.test" });
  assert.deepEqual((await login("b.test")).auth, { identitytoken: "stored-b.test", serveraddress: "b.test" });
  assert.deepEqual(await login("none.test"), { auth: null, problem: null });
});

test("a login that cannot be read is said without its secret, and the pull goes on without one", async (t) => {
  for (const [config, why] of [
    [undefined, null],
    [`{"auths": {"a.test": {"auth": "${auth}"`, /not in Docker's form/],
    [{ auths: { "a.test": { auth: 7 } } }, /not in Docker's form/],
    [{ credsStore: "missing" }, /docker-credential-missing is not installed/],
    [{ credsStore: "fails" }, /docker-credential-fails failed/],
    [{ credsStore: "../../bin/sh" }, /no name of a credential helper/],
  ] as const) {
    const login = await loginsOf(t, config, { fails: `echo ${auth}; echo ${auth} >&2; exit 2` });
    const { auth: found, problem } = await login("a.test");
    assert.equal(found, null);
    if (why === null) assert.equal(problem, null);
    else assert.match(problem ?? "", why);
    assert.ok(!problem?.includes(auth.slice(0, 6)), problem ?? "");
  }
});
