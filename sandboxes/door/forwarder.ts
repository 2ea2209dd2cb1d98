/**
 * Runs inside the sandbox as a user of its own, and carries connections over its standard input and output.
 *
 *     node forwarder.ts listen PORT    takes connections at 127.0.0.1:PORT for the host
 *     node forwarder.ts connect        makes connections to ports of 127.0.0.1 that the host asks for
 */
import { connect, createServer } from "node:net";
import { joinConnections } from "./join-connections.ts";
import { type MultiplexedStream, Multiplexer } from "./multiplexer.ts";

const [task, port] = process.argv.slice(2);

const multiplexer = new Multiplexer(process.stdout, task === "connect" ? { onStream: connectTo } : {});

function connectTo(stream: MultiplexedStream, wanted: number): void {
  const socket = connect({ host: "127.0.0.1", port: wanted, noDelay: true, allowHalfOpen: true }, () => stream.sayConnected());
  joinConnections(socket, stream);
}

function listenAt(wanted: number): void {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const stream = multiplexer.open();
    if (stream === null) socket.resetAndDestroy();
    else joinConnections(socket, stream);
  });
  server.on("error", (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  });
  server.listen({ host: "127.0.0.1", port: wanted, backlog: 1024 }, () => multiplexer.ready());
}

if (task === "connect") multiplexer.ready();
else listenAt(Number(port));

process.stdin.on("data", (chunk: Buffer) => multiplexer.feed(chunk));
// The host closed the door, so there is no other end.
process.stdin.on("close", () => process.exit(0));
process.stdin.on("end", () => process.exit(0));
process.stdout.on("error", () => process.exit(0));
