/** Sets that are known but not loaded. Each says by which columns it is known, and which column shows why it cannot load. */
import { taskError } from "../task-error.ts";
import type { SweSet } from "./swe-set.ts";

const refused: readonly { name: string; title: string; columns: readonly string[]; column: string; why: string }[] = [
  {
    name: "swe-lancer",
    title: "SWE-Lancer",
    columns: ["question_id", "variant", "price"],
    column: "variant",
    why: "and rows of SWE-Lancer name no image: their repository, and the flows in a browser that grade it, lie in one that its authors' code builds",
  },
  {
    name: "swe-lancer-row",
    title: "SWE-Lancer in columns of another order",
    columns: ["manager_data", "acceptable_folders"],
    column: "acceptable_folders",
    why: "folders of tests of SWE-Lancer, which lie in an image that the row does not name",
  },
  {
    name: "nemotron-swe-patch",
    title: "Nemotron's rows for a patch in one answer",
    columns: ["responses_create_params", "instance", "metadata"],
    column: "metadata.image",
    why: "an image for Singularity beside a task for one answer of a model without a harness: load the set that dataset_name names",
  },
  {
    name: "nemotron-swe-judge",
    title: "Nemotron's rows for a choice among patches",
    columns: ["responses_create_params", "options", "expected_answer"],
    column: "options",
    why: "patches to choose from: the row has no repository, and a letter is the answer",
  },
  {
    name: "nemotron-swe-pivot",
    title: "Nemotron's rows for the next tool call",
    columns: ["responses_create_params", "expected_action"],
    column: "expected_action",
    why: "the one tool call that is right: such a row has no repository and no tests",
  },
  {
    name: "deepswe",
    title: "DeepSWE as NeMo Gym holds it",
    columns: ["responses_create_params", "verifier_metadata", "image"],
    column: "verifier_metadata",
    why: "a name of tests that lie beside the rows: load the set's Harbor folders",
  },
];

export const refusedSets: readonly SweSet[] = refused.map(({ name, title, columns, column, why }) => ({
  name,
  title,
  columns,
  toTask(row, { where }) {
    const value = column.split(".").reduce<unknown>((found, key) => valueAt(found, key), row);
    throw taskError(where, column, `is ${(JSON.stringify(value) ?? "missing").slice(0, 80)}, ${why}`);
  },
}));

function valueAt(value: unknown, key: string): unknown {
  return value !== null && typeof value === "object" ? Object.entries(value).find(([name]) => name === key)?.[1] : undefined;
}
