import assert from "node:assert/strict";
import { test } from "node:test";
import { parseImageName } from "../../../../../sandboxes/docker/images/image-name.ts";
import { statusLines } from "../../../../../sandboxes/docker/images/made/buildkit-status.ts";
import { beyondClassic, heredocsOf, imagesOf, syntaxOf } from "../../../../../sandboxes/docker/images/made/dockerfile.ts";
import { OutputTail } from "../../../../../sandboxes/docker/images/made/output-tail.ts";

test("the images of a Dockerfile are those of FROM and COPY --from, with its arguments, without its stages", () => {
  const text = `# syntax=docker/dockerfile:1
ARG TAG=3.11
ARG BASE
FROM --platform=linux/arm64 python:\${TAG}-slim AS build
RUN echo \\
  # between
  FROM nothing
RUN psql <<SQL && cat <<-"END"
FROM users
SQL
FROM too
	END
from build as next
COPY --chown=1:1 --from=build /a /a
COPY --from=ghcr.io/x/y:1 /b /b
COPY --from=0 /c /c
FROM $BASE
FROM \${UNKNOWN}
FROM scratch
`;
  assert.deepEqual(imagesOf(text, { BASE: "debian:12", TAG: "3.12" }), [
    { image: "python:3.12-slim", platform: "linux/arm64" },
    { image: "ghcr.io/x/y:1", platform: null },
    { image: "debian:12", platform: null },
  ]);
  assert.equal(syntaxOf(text), "docker/dockerfile:1");
  assert.equal(syntaxOf("FROM x\n# syntax=later\n"), null);
});

test("what the classic builder cannot do is named with its line", () => {
  const text =
    "FROM x\nRUN --mount=type=cache,target=/c make\nCOPY --link a b\nRUN <<EOF\necho 1\nEOF\nRUN cat <<< text\nRUN echo $((1<<2))\n";
  assert.deepEqual(beyondClassic(text), [
    { line: 4, what: "a heredoc (RUN <<…)" },
    { line: 2, what: "RUN --mount" },
    { line: 3, what: "COPY --link" },
  ]);
  assert.equal(heredocsOf(text).length, 1);
  assert.deepEqual(beyondClassic("# syntax=docker/dockerfile:1.4\nFROM x\nRUN make\n"), []);
  assert.deepEqual(beyondClassic("# syntax=other/frontend\nFROM x\n"), [{ line: 1, what: "# syntax=other/frontend" }]);
});

test("a name of an image is read as the engine reads it", () => {
  const parts = (name: string) => Object.values(parseImageName(name));
  assert.deepEqual(parts("debian"), ["docker.io", "debian", "latest"]);
  assert.deepEqual(parts("a/b:1"), ["docker.io", "a/b", "1"]);
  assert.deepEqual(parts("127.0.0.1:5000/a/b"), ["127.0.0.1:5000", "127.0.0.1:5000/a/b", "latest"]);
  assert.deepEqual(parts("localhost/a:1"), ["localhost", "localhost/a", "1"]);
  const digest = `sha256:${"0".repeat(64)}`;
  assert.deepEqual(parts(`ghcr.io/a/b:1@${digest}`), ["ghcr.io", "ghcr.io/a/b", digest]);
  for (const name of ["", "A/b", "../x", "a//b", "a b", "a:", "http://a/b", "x".repeat(501), "a/b\n"])
    assert.throws(() => parseImageName(name), { code: "task_invalid", param: "environment.image" }, name);
});

test("BuildKit's steps, output and errors are read, and what is no such message is empty", () => {
  const field = (number: number, bytes: Buffer | string) =>
    Buffer.concat([Buffer.from([number * 8 + 2, Buffer.byteLength(bytes)]), Buffer.from(bytes)]);
  const time = field(5, Buffer.from([8, 1]));
  const step = field(1, Buffer.concat([field(3, "[2/3] RUN make"), time]));
  const output = field(3, Buffer.concat([field(1, "digest"), Buffer.from([24, 1]), field(4, "made\n")]));
  const error = field(1, Buffer.concat([field(3, "[2/3] RUN make"), time, field(7, "exit code: 2")]));
  assert.equal(statusLines(Buffer.concat([step, output, error])), "[2/3] RUN make\nmade\nERROR: exit code: 2\n");
  for (const bytes of [[], [255], [10, 200], [7, 7, 7], Array(40).fill(255)]) assert.equal(statusLines(Buffer.from(bytes)), "");
});

test("of a long output the end is kept, without colours", () => {
  const tail = new OutputTail();
  for (let line = 0; line < 100_000; line += 1) tail.add(`\u001b[31mline ${line}\u001b[0m\n`);
  const text = tail.toString();
  assert.ok(text.startsWith("…") && text.endsWith("line 99998\nline 99999") && text.length <= 4_001, text.slice(0, 20));
});
