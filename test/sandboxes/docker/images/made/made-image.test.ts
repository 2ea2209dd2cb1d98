/** Checks what an engine is asked to build for an image of Debian packages. */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import type Docker from "dockerode";
import { ensureMade } from "../../../../../sandboxes/docker/images/made/made-image.ts";

test("an image is built from packages with exactly the given names", async () => {
  const built: string[] = [];
  const docker = {
    modem: {},
    getImage: () => ({ inspect: () => Promise.reject(Object.assign(new Error("no such image"), { statusCode: 404 })) }),
    buildImage: async (context: Readable) => {
      built.push((await buffer(context)).toString("utf8"));
      return Readable.from([]);
    },
  } as unknown as Docker;
  const made = { title: "image", name: "test/exact:1", cure: "do without", packages: ["bash", "no.such"], left_out: [] };
  assert.equal(await ensureMade(made, { signal: AbortSignal.timeout(60_000) }, docker), made.name);
  assert.equal(built.length, 1);
  // apt takes the name of a package that is not there for a regular expression otherwise.
  assert.match(built[0] ?? "", / install -y .*-o APT::Cmd::Pattern-Only=true bash no\.such /);
});
