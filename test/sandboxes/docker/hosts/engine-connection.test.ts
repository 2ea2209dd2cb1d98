/** An engine that misleads or breaks off: the client goes to no other host, and no request of it waits for ever. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connectEngine } from "../../../../sandboxes/docker/hosts/engine-connection.ts";
import { hasImage } from "../../../../sandboxes/docker/images/has-image.ts";
import { imageAt } from "../../../../sandboxes/docker/images/image-at.ts";
import { CountingListener } from "../../../fakes/machine/counting-listener.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";
import { ScriptedDocker } from "../../../fakes/machine/scripted-docker.ts";

const scratch = scratchFolder("engine-connection");

test("a redirect of the engine is followed to no host, and to none that does not resolve", async () => {
  await using elsewhere = await CountingListener.start();
  const places = [
    `http://${elsewhere.host}/x`,
    `//${elsewhere.host}/x`,
    "http://no-such-host.invalid/x",
    "https://[::1]:1/x",
    "gopher://x",
    "",
  ];
  for (const location of places)
    for (const status of [301, 302, 303, 307, 308]) {
      await using engine = await ScriptedDocker.start(scratch, (_, response) => void response.writeHead(status, { location }).end());
      const docker = connectEngine({ host: engine.host });
      await assert.rejects(
        hasImage(docker, "debian:12"),
        { code: "sandbox_unavailable", message: new RegExp(`HTTP code ${status}`) },
        location,
      );
      await assert.rejects(docker.buildImage(Buffer.alloc(0) as never, { t: "x" }), { statusCode: status }, location);
    }
  assert.equal(elsewhere.connections, 0);
});

test("an engine that breaks off in its answer fails the request", async () => {
  await using engine = await ScriptedDocker.start(scratch, (_, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write('{"Id":', () => response.destroy());
  });
  await assert.rejects(hasImage(connectEngine({ host: engine.host }), "debian:12"), { code: "sandbox_unavailable", message: /aborted/ });
});

test("a text that is no name of an image reaches no engine", async () => {
  await using engine = await ScriptedDocker.start(scratch, (_, response) => void response.end("{}"));
  const docker = connectEngine({ host: engine.host });
  for (const name of ["../containers/json?all=1", "..%2fx", "", "a?b", "a#b", "a/../b", "/a", "//host/a"])
    assert.throws(() => imageAt(docker, name), { code: "task_invalid", param: "environment.image" }, name);
  assert.deepEqual(engine.asked, []);
  const id = `sha256:${"a".repeat(64)}`;
  for (const name of [id, "alidade/snapshot:0123456789abcdef", "localhost:5000/a/b:1", `a@${id}`]) await imageAt(docker, name).inspect();
  assert.deepEqual(engine.asked[0], `GET /images/${id}/json`);
});
