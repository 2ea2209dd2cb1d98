/** Ports for servers that are told theirs: one that starts long after it was asked for, or comes back where it was. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * A port of this machine that is free, and stays so until it is used: systems give whoever asks for any port one above
 * these (Linux from 32768, others from 49152), so nobody gets it by chance meanwhile.
 */
export async function quietPort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 30_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
