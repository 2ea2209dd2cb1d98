/** What of the network a task may reach, and what a rollout's record says of its use. */
import { z } from "zod";
import { wordsOf } from "./reasons/meaning.ts";
import { refusals } from "./reasons/network.ts";

const label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** The last label holds a letter: what is all digits is read as an IPv4 address. */
const lastLabel = "(?=[a-z0-9-]*[a-z])[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** `*.` wants two labels behind it: `*.com` would be nearly the public network. */
const allowedName = new RegExp(`^(?:(?:${label}\\.)*|\\*\\.(?:${label}\\.)+)${lastLabel}(?::[1-9][0-9]{0,4})?$`);

const AllowedName = z
  .string()
  .max(260)
  .refine((name) => allowedName.test(name) && Number(name.split(":")[1] ?? 1) <= 65_535, {
    message: "a host name in small letters such as pypi.org, *.pypi.org or git.example.org:8443, and no address",
  });

export const NetworkAccess = z.union([z.enum(["none", "public"]), z.strictObject({ allow: z.array(AllowedName).min(1).max(200) })]);
export type NetworkAccess = z.infer<typeof NetworkAccess>;

/** When a sandbox used the network: for the task's set-up, with the agent in it, or for grading. */
const Phase = z.enum(["setup", "agent", "grading"]);
export type NetworkPhase = z.infer<typeof Phase>;

export type NetworkRefusal = keyof typeof refusals;

export const NetworkUse = z.strictObject({
  destinations: z
    .array(
      z.strictObject({
        phase: Phase,
        host: z.string(),
        port: z.number().int(),
        connections: z.number().int().describe("connections that were opened to it"),
        sent_bytes: z.number().int().describe("bytes to it on those connections, as far as they have ended"),
        received_bytes: z.number().int(),
      }),
    )
    .describe("where connections went; paths, headers and contents are not kept"),
  refusals: z
    .array(
      z.strictObject({
        phase: Phase,
        host: z.string().nullable().describe("as it was asked for; null where no host was named, or none that can be shown"),
        port: z.number().int().nullable(),
        reason: z.enum(wordsOf(refusals)),
        times: z.number().int(),
      }),
    )
    .describe("what was refused or failed"),
  left_out: z.number().int().describe("connections and refusals that are in neither list, because the list is full"),
});
export type NetworkUse = z.infer<typeof NetworkUse>;
