/**
 * Runs inside the sandbox as a user of its own: takes connections at 127.0.0.1:PORT and carries them over its standard
 * input and output to the host. Start: `node forwarder.ts PORT`.
 */
import { createServer } from "node:net";
import { Multiplexer } from "./multiplexer.ts";

const port = Number(process.argv[2]);
const multiplexer = new Multiplexer(process.stdout);

const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
  const stream = multiplexer.open();
  if (stream === null) {
    socket.resetAndDestroy();
    return;
  }
  socket.pipe(stream).pipe(socket);
  socket.on("error", () => stream.resetAndDestroy());
  socket.on("close", () => stream.destroySoon());
  stream.on("error", () => socket.resetAndDestroy());
  stream.on("close", () => socket.destroySoon());
});
server.on("error", (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
server.listen({ host: "127.0.0.1", port, backlog: 1024 }, () => multiplexer.ready());

process.stdin.on("data", (chunk: Buffer) => multiplexer.feed(chunk));
// The host closed the door, so there is no other end.
process.stdin.on("close", () => process.exit(0));
process.stdin.on("end", () => process.exit(0));
process.stdout.on("error", () => process.exit(0));
