"""TRL's trainers on rows that Alidade exported.

    rows = GrpoRows("grpo.jsonl")                  # alidade export --format trl-grpo --group-size 8
    GRPOTrainer(model=..., train_dataset=rows.dataset(), rollout_func=rows.rollout_func, reward_funcs=rows.reward,
                args=GRPOConfig(num_generations=rows.num_generations, ...)).train()

    grpo_trainer()(model=..., processing_class=..., ...)     # in place of GRPOTrainer if rows show pictures

    for sample in rollout_samples("async.jsonl"):  # alidade export --format trl-async
        queue.put(sample)                          # the queue of RolloutQueueDataset

    for sample in distillation_samples("async.jsonl"): ...   # after `alidade score --top-k`: for AsyncDistillationTrainer

    DPOOnTokens = dpo_trainer()                    # alidade export --format trl-dpo
    DPOOnTokens(model=..., train_dataset=preferences("dpo.jsonl"), ...).train()

    sft_trainer("media")(model=..., processing_class=..., ...)     # in place of SFTTrainer if rows of `trl-sft` show pictures

Rows of `trl-sft` are a data set as they stand, and so are those of `trl-dpo` where TRL may tokenise the messages anew:
datasets.load_dataset("json", data_files=...).
"""

import json

from ..media import beside
from ..rows import as_floats, read
from ..trl_pictures import grpo_trainer, hand_over, sft_trainer  # noqa: F401  (both trainers are for the caller)


class GrpoRows:
    """Plays recorded groups back: returns recorded rows for each prompt in place of samples. Reads rows only when they are asked for.
    `pictures`: the folder of their pictures, by default `media/` beside the file."""

    def __init__(self, file, pictures=None):
        self._file, self._offsets, self._next = file, [], {}
        self._pictures = pictures or beside(file)
        with open(file, "rb") as lines:
            offset = 0
            for line in lines:
                if json.loads(line)["position"] == 0:
                    self._offsets.append([])
                self._offsets[-1].append(offset)
                offset += len(line)
        sizes = sorted({len(group) for group in self._offsets})
        if len(sizes) != 1:
            raise ValueError(f"{file}: groups of {sizes or 'no'} rows; export with --group-size, for TRL wants one size")
        self.num_generations = sizes[0]

    def dataset(self):
        """One prompt a group. It only names the group: the tokens of the prompt are in the rows."""
        from datasets import Dataset

        return Dataset.from_list([{"prompt": f"group {index}"} for index in range(len(self._offsets))])

    def rollout_func(self, prompts, trainer):
        """The rows of each prompt's group in their order, a new epoch from the start of the group."""
        every, first = list(prompts), 0
        accelerator = getattr(trainer, "accelerator", None)
        if accelerator is not None and accelerator.num_processes > 1:
            # The places of a group are shared out among the processes.
            from accelerate.utils import gather_object

            every = gather_object(list(prompts))
            first = accelerator.process_index * len(prompts)
        chosen = [self._place(prompt) for prompt in every][first : first + len(prompts)]
        rows = list(self._rows(chosen))
        hand_over(trainer, [(row, self._pictures) for row in rows])
        out = {key: [row[key] for row in rows] for key in ("prompt_ids", "completion_ids", "env_mask")}
        logprobs = [as_floats(row["logprobs"]) for row in rows]
        return {**out, "logprobs": logprobs, "alidade_reward": [row["reward"] for row in rows]}

    def _place(self, prompt):
        group = int(prompt.removeprefix("group "))
        place = self._next.get(group, 0)
        self._next[group] = (place + 1) % self.num_generations
        return self._offsets[group][place]

    def _rows(self, offsets):
        with open(self._file, "rb") as lines:
            for offset in offsets:
                lines.seek(offset)
                yield json.loads(lines.readline())

    @staticmethod
    def reward(completions, alidade_reward, **_):
        """None where none was measured: TRL keeps such a row out of the baseline."""
        return list(alidade_reward)


def rollout_samples(file):
    """TRL's own `RolloutSample` for each row."""
    import numpy as np
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    for row in read(file):
        arrays = {key: np.array(row[key]) for key in ("input_ids", "completion_mask", "old_log_probs")}
        rest = {key: row[key] for key in ("prompt", "completion", "advantage", "model_version", "group_id", "metrics")}
        yield RolloutSample(**arrays, **rest)


def distillation_samples(file, teacher_id="teacher"):
    """`RolloutSample` of TRL's asynchronous distillation for each row, after `alidade score --top-k`. `teacher_id`: the trainer's name of
    that teacher. A token that was not scored has no candidates, and TRL leaves it out of the loss."""
    import numpy as np
    from trl.experimental.async_distillation.async_rollout_worker import RolloutSample

    rows = list(read(file))
    if not all("teacher_topk_ids" in row for row in rows):
        raise ValueError(f"{file}: not every row has a teacher's likeliest tokens: alidade score --top-k")
    width = max((len(ids) for row in rows for ids in row["teacher_topk_ids"]), default=0)

    def padded(lists, fill, dtype):
        return np.array([one + [fill] * (width - len(one)) for one in lists], dtype=dtype)

    for row in rows:
        rest = {key: row[key] for key in ("prompt", "completion", "model_version")}
        yield RolloutSample(
            input_ids=np.array(row["input_ids"], dtype=np.int64),
            completion_mask=np.array(row["completion_mask"], dtype=np.int64),
            teacher_topk_ids=padded(row["teacher_topk_ids"], -1, np.int64),
            teacher_topk_logprobs=padded(row["teacher_topk_logprobs"], -np.inf, np.float32),
            metrics={key: value for key, value in row["metrics"].items() if value is not None},
            teacher_id=teacher_id,
            prompt_id=row["group_id"],
            **rest,
        )


def preferences(file):
    """The pairs in the tokens that were sampled. Refuses a file in which some pair has none."""
    from datasets import Dataset

    keys = ("prompt_ids", "chosen_ids", "rejected_ids")
    rows = [{key: row[key] for key in keys} for row in read(file)]
    missing = sum(row["prompt_ids"] is None for row in rows)
    if missing:
        raise ValueError(f"{file}: {missing} of {len(rows)} pairs have no token ids, for their prompts were not the same tokens, or show pictures")
    return Dataset.from_list(rows)


def dpo_trainer():
    """TRL's DPOTrainer for pairs that are tokens already: it would ask for messages and tokenise them anew."""
    from trl import DPOTrainer

    class DPOOnTokens(DPOTrainer):
        def _prepare_dataset(self, dataset, *_):
            return dataset

    return DPOOnTokens
