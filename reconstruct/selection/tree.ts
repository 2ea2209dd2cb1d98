/** For trainers with tree attention: what paths share is computed once, whatever the number of branches. */
import type { Selection } from "./selection.ts";
import { strictPaths } from "./strict.ts";

export const tree: Selection = {
  name: "tree",
  title: "the whole tree in one row, each shared prefix once, with position_ids and parent_index for tree attention",
  packed: true,
  paths: strictPaths,
};
