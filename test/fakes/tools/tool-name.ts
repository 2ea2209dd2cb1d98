import { plainToolName } from "../../../base/schema/environment/tool-servers.ts";
import type { WireRequest } from "../engines/scripted-engine.ts";

/** What a harness calls a tool of a server, by its request; undefined where it does not offer it. */
export function toolNameIn(request: WireRequest | undefined, server: string, tool: string): string | undefined {
  const names = (request?.tools as { function: { name: string } }[] | undefined)?.map(({ function: { name } }) => name) ?? [];
  const wanted = new RegExp(`^(mcp__?)?${plainToolName(server)}_{1,2}${tool}$`);
  return names.find((name) => wanted.test(plainToolName(name)));
}
