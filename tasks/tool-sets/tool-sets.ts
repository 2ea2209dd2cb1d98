/**
 * Published sets of tasks with tools, named by a small file `….set.yaml`. The packages' own code decides whether a task is solved. It
 * also provides the tools or the pages, which a separate service serves.
 *
 *     set: tau2
 *     domain: retail
 *     user_model: gpt-4.1   # speaks for the customers
 */
import { z } from "zod";
import { readYaml } from "../readers/read-yaml.ts";
import { parseTask } from "../task-error.ts";
import type { TaskFormat } from "../task-format.ts";
import { loadToolDomain, ToolDomainFiles } from "./load-tool-domain.ts";
import { loadMiniwob, MiniwobFile } from "./miniwob/load-miniwob.ts";

const SetFile = z.discriminatedUnion("set", [...ToolDomainFiles, MiniwobFile]);

export const toolSets: TaskFormat = {
  name: "tool-set",
  title: "a published set of tasks with tools, named by a file ….set.yaml",

  async matches(path) {
    return path.endsWith(".set.yaml");
  },

  async load(path, options) {
    const file = parseTask(SetFile, await readYaml(path, { followsLinks: true }), path);
    return file.set === "miniwob" ? loadMiniwob(path, file, options) : loadToolDomain(path, file, options);
  },
};
