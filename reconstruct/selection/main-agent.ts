/** Only the main agent learns. The output of its sub-agents reaches it as tool results. */
import { pathsOfAgent } from "./by-agent.ts";
import type { Selection } from "./selection.ts";

export const mainAgent: Selection = {
  name: "main-agent",
  title: "the strict rows of the agent that was given the task; its sub-agents are left out",
  paths: (tree) => tree.leadAgents.flatMap((agent) => pathsOfAgent(tree, agent)),
};
