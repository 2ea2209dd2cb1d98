/** Where a harness runs and which URL it calls; all paths are those that its own process sees. */
export type HarnessContext = {
  instruction: string;
  /** The proxy without a trailing slash and without `/v1`. */
  baseUrl: string;
  apiKey: string;
  model: string;
  home: string;
  workdir: string;
  /** Folder of the installed pack (pack.ts): `<pack>/bin/<harness>` starts it, `<pack>/node/bin/node` is its Node. */
  pack: string;
  /** Tokens that fit into the engine; null is unknown. */
  contextWindow: number | null;
  /** Servers of tools (MCP) of the task, each at its own address. Absent: it has none. */
  tools?: readonly HarnessTools[];
  /** The task's skills are in the folder that `Harness.skills` names. Absent: it has none. */
  skills?: true;
  /** begins: keep the conversation. goes_on: continue the kept one with the instruction as next message. Absent: keep none. */
  dialogue?: "begins" | "goes_on";
};

/** A server of tools, which speaks Streamable HTTP at `url`. */
export type HarnessTools = { name: string; url: string };
