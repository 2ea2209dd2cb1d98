/** Where a container engine listens. */
import { z } from "zod";

export const EngineAddress = z.preprocess(
  (value) => (typeof value === "string" ? { host: value } : value),
  z.strictObject({
    host: z
      .string()
      .refine((host) => engineUrl(host) !== null, {
        error: "expected an address such as unix:///var/run/docker.sock, tcp://10.0.0.5:2376 or ssh://user@host",
      })
      .describe("as DOCKER_HOST has it: unix:///run/docker.sock, tcp://10.0.0.5:2376, ssh://user@host"),
    cert_path: z.string().optional().describe("folder with ca.pem, cert.pem and key.pem; default: $DOCKER_CERT_PATH, else ~/.docker"),
  }),
);
export type EngineAddress = z.infer<typeof EngineAddress>;

/** The address as a URL; null: it is none that an engine can have. */
export function engineUrl(host: string): URL | null {
  const url = URL.parse(host.includes("://") ? host : `tcp://${host}`);
  if (url === null || !["unix:", "tcp:", "http:", "https:", "ssh:"].includes(url.protocol)) return null;
  const isWhole = url.protocol === "unix:" ? url.pathname.startsWith("/") : url.hostname !== "" && !url.hostname.startsWith("-");
  return isWhole ? url : null;
}
