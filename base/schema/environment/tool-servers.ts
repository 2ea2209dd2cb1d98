/** Tool servers (MCP) in services of a task. The agent reaches them only through a relay of the proxy. */
import { z } from "zod";
import { AbsolutePath } from "./absolute-path.ts";

/** Harnesses put this name into tool names: `mcp__shop__find`. Two underscores in a row would end it too early. */
const ToolServerName = z
  .string()
  .regex(
    /^(?=.{1,30}$)[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$/,
    "small letters and digits with single dashes or underscores between, at most 30",
  );

/** Names the agent's own sandbox instead of a service. */
export const ownPlace = "main";

/** Harnesses on Node wait at most five minutes for the first byte. The relay sends nothing before the service answers. */
const longestToolSeconds = 280;

const mebibyte = 1024 * 1024;

export const ToolServer = z
  .strictObject({
    name: ToolServerName.describe("by which harnesses call it"),
    service: z
      .string()
      .min(1)
      .describe("the service that it runs in; main: the agent's own sandbox, where the agent can reach it in any way"),
    port: z.number().int().min(1).max(65_535).optional().describe("where it speaks Streamable HTTP, on the service's loopback"),
    path: AbsolutePath.optional().describe("of its endpoint; left out: /mcp"),
    command: z
      .array(z.string())
      .min(1)
      .optional()
      .describe("or a command that is run in the service for each rollout, and speaks over its standard input and output"),
    allow: z.array(z.string().min(1)).min(1).max(200).optional().describe("the tools that the agent gets; left out: all"),
    timeout_seconds: z.number().positive().max(longestToolSeconds).default(60).describe("seconds that a call may take"),
    max_result_bytes: z
      .number()
      .int()
      .positive()
      .max(16 * mebibyte)
      .default(4 * mebibyte)
      .describe("bytes of one result; a larger one is an error to the model"),
  })
  .refine(({ port, command }) => (port === undefined) !== (command === undefined), {
    path: ["port"],
    message: "a server of tools has a port or a command",
  })
  .refine(({ path, command }) => path === undefined || command === undefined, {
    path: ["path"],
    message: "belongs to a port, and a command has none",
  });
export type ToolServer = z.infer<typeof ToolServer>;

/** Bounds connections, and the part of the first prompt that lists tools. */
export const mostToolServers = 8;

export const ToolServers = z
  .array(ToolServer)
  .min(1)
  .max(mostToolServers)
  .superRefine((servers, { addIssue }) => {
    const seen = new Set<string>();
    for (const [index, { name }] of servers.entries()) {
      const known = plainToolName(name);
      if (seen.has(known)) addIssue({ code: "custom", path: [index, "name"], message: `the name ${name} is taken: choose another` });
      seen.add(known);
    }
  });

/** Returns the name as harnesses may write it. APIs allow letters, digits and underscores; any other character becomes an underscore. */
export function plainToolName(name: string): string {
  return name.replace(/[^A-Za-z0-9]/g, "_");
}
