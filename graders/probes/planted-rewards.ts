import { writeRewards } from "./forged/forged-rewards.ts";
import type { Probe } from "./probe.ts";

export const plantedRewards: Probe = {
  name: "planted-rewards",
  title: "writes the files that a grader might read as its reward",
  rows: [1],
  languages: "any",
  cure: "let the grader write its reward where no work can stand, or remove what is there before it begins",
  script: writeRewards,
};
