/** The trainers whose data loaders read prompts. Each row is what that loader makes a sample of, as JSON lines. */
import type { PromptFormat, TaskFacts } from "./prompt-row.ts";

const conversation = (instruction: string) => [{ role: "user", content: instruction }];

/** Labels have other names in every task, and a table wants the same columns in every row. */
const flat = ({ labels, ...facts }: TaskFacts) => ({ ...facts, labels: JSON.stringify(labels) });

export const promptFormats: readonly PromptFormat[] = [
  {
    name: "verl",
    title: "verl's RLHFDataset: prompt, data_source, reward_model, extra_info",
    row: (facts, instruction, index) => ({
      data_source: facts.data_source,
      prompt: conversation(instruction),
      ability: "agent",
      // The reward comes with the rollout; what stands here is only handed on.
      reward_model: { style: "rule", ground_truth: facts.task_id },
      extra_info: { index, ...flat(facts) },
    }),
  },
  {
    name: "slime",
    title: "slime's and miles's Dataset, with --input-key prompt --label-key label --metadata-key metadata",
    row: (facts, instruction) => ({ prompt: conversation(instruction), label: facts.task_id, metadata: flat(facts) }),
  },
  {
    name: "trl",
    title: "TRL's trainers: a prompt column; the other columns go to reward functions",
    row: (facts, instruction) => ({ prompt: conversation(instruction), ...flat(facts) }),
  },
  {
    name: "skyrl",
    title: "SkyRL's PromptDataset: the other columns are a generator's env_extras",
    row: (facts, instruction) => ({ prompt: conversation(instruction), ...flat(facts) }),
  },
  {
    name: "nemo-gym",
    title: "NeMo Gym's rows: responses_create_params, with the task in its metadata",
    row: ({ labels: _labels, task_set_version, ...facts }, instruction) => ({
      responses_create_params: {
        input: conversation(instruction),
        metadata: { ...facts, ...(task_set_version !== null && { task_set_version }) },
      },
      task_id: facts.task_id,
    }),
  },
  {
    name: "prime-rl",
    title: "verifiers' TaskData, which prime-rl's tasksets are made of",
    row: (facts, instruction, index) => ({ idx: index, id: facts.task_id, name: facts.task_id, prompt: instruction, info: flat(facts) }),
  },
];
