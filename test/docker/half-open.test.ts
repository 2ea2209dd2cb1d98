/** A client whose machine is gone: no FIN, no reset, nothing ever comes from it again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { dockerClient } from "../../sandboxes/docker/client.ts";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { bridgeAddress } from "../fakes/machine/bridge-address.ts";
import { proxyAt } from "../fakes/proxies/proxy-at.ts";
import { need } from "../needs.ts";
import { canListen } from "../quiet-port.ts";

const ask = `
import json, sys, urllib.request
body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "hello"}]}).encode()
urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, {"content-type": "application/json"})).read()`;

test("a client whose machine is gone in the middle of a call is found, and who asks again gets that turn", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const docker = await dockerClient();
  const image = await ensureBaseImage({ signal: t.signal });
  const bridge = docker.getNetwork("bridge");
  const us = await bridgeAddress();
  if (!us || !(await canListen(us, 0))) return t.skip("docker: its containers are not on a bridge of this machine");

  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: "late", beforeEnd: hold.promise }), {
    host: us,
    clientTimeouts: { silentMs: 1_000 },
  });
  const client = await at.open();
  const machine = await docker.createContainer({
    Image: image,
    Cmd: ["python3", "-c", ask, `${at.proxy.url}/s/${client.key}/v1/chat/completions`],
  });
  await using _ = { [Symbol.asyncDispose]: () => machine.remove({ force: true }) };
  await machine.start();
  const { running } = at.proxy.session(client.sessionId);
  while (running.inFlight()[0]?.generation?.isAccepted !== true) await sleep(50, undefined, { signal: t.signal });
  await bridge.disconnect({ Container: machine.id, Force: true });
  // Linux asks ten times, a second apart.
  while (running.inFlight().some(({ call }) => running.clientsOf(call).length > 0)) await sleep(100, undefined, { signal: t.signal });
  hold.resolve();
  assert.equal((await client.say([{ role: "user", content: "hello" }])).content, "late");
  assert.equal(at.engine.requests.length, 1);
  assert.deepEqual(at.unseen, []);
});
