import assert from "node:assert/strict";
import { test } from "node:test";
import { Environment } from "../../../../base/schema/task.ts";
import { connectEngine } from "../../../../sandboxes/docker/hosts/engine-connection.ts";
import { prepareImages } from "../../../../sandboxes/docker/images/prepare-images.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";
import { ScriptedDocker } from "../../../fakes/machine/scripted-docker.ts";

const scratch = scratchFolder("prepare-images");

test("an image that cannot be had is told with the names of its tasks", async () => {
  await using engine = await ScriptedDocker.start(scratch, ({ url = "" }, response) => {
    const isPull = url.startsWith("/images/create");
    response.writeHead(isPull ? 200 : 404).end(JSON.stringify(isPull ? { error: "manifest unknown" } : { message: "no such image" }));
  });
  const said: string[] = [];
  const environments = ["acme/a:1", "acme/a:1", "acme/b:1"].map((image) => Environment.parse({ image }));
  const options = { signal: AbortSignal.timeout(20_000), progress: (line: string) => void said.push(line) };
  const user = { run_id: "r", tasks: ["one", "two", "three"] };
  const images = await prepareImages(connectEngine({ host: engine.host }), environments, { ...options, user });
  assert.deepEqual(
    images.map(({ error }) => error?.code),
    ["image_pull_failed", "image_pull_failed", "image_pull_failed"],
  );
  const told = said.filter((line) => line.includes("could not be pulled")).sort();
  assert.deepEqual(
    told.map((line) => line.split(": ")[0]),
    ["task one, two", "task three"],
  );
});
