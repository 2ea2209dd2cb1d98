/** Where only the agent that was given the task is to learn. What its sub-agents said reaches it as tool results. */
import { pathsOfAgent } from "./by-agent.ts";
import type { Selection } from "./selection.ts";

export const mainAgent: Selection = {
  name: "main-agent",
  title: "the strict rows of the agent that was given the task; its sub-agents are left out",
  paths: (tree) => tree.leadAgents.flatMap((agent) => pathsOfAgent(tree, agent)),
};
