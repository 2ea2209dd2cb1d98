/** Ports for servers that are told theirs: one that starts long after it was asked for, or comes back where it was. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * A port of this machine that is free, and stays so until it is used: systems give a program that asks for any port one above
 * these (Linux from 32768, others from 49152), so no program gets it by chance meanwhile.
 */
export async function quietPort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 30_000);
    if (await canListen("127.0.0.1", port)) return port;
  }
}

/** Whether the address is one of this machine's, also where its interface is not up yet, and the port is free; 0 is any port. */
export function canListen(host: string, port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false)).listen(port, host, () => server.close(() => resolve(true)));
  });
}
