"""TRL: a whole `GRPOTrainer.train()` of one optimizer step on our rows, with the logprobs that it computes itself."""

import tempfile

import torch
from alidade.loaders.trl import GrpoRows
from policy import ratios
from trl import GRPOConfig, GRPOTrainer

PACKAGE = "trl"


class Watched(GRPOTrainer):
    """Remembers the importance ratios of the batch that it trains on."""

    ratios = None

    def _compute_loss(self, model, inputs):
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
        with torch.no_grad():
            new = self._get_per_token_logps_and_entropies(model, ids, attention, inputs["completion_ids"].size(1))[0]
        # TRL pads the tool mask with 1.
        trained = inputs["completion_mask"] * inputs["tool_mask"]
        self.ratios = ratios(new, inputs["sampling_per_token_logps"], trained)
        return super()._compute_loss(model, inputs)


def ratios_of(file, policy):
    """Group by group: TRL pads a batch on the left and counts positions from there, so that a short prompt beside a long
    one has the rounding of far positions."""
    rows = GrpoRows(file)
    dataset = rows.dataset()
    groups = range(len(dataset)) if policy.trains else [len(dataset) - 1]
    return torch.cat([train(rows, dataset.select([group]), policy) for group in groups])


def train(rows, dataset, policy):
    model = policy.copy()
    before = model.lm_head.weight.detach().clone()
    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder,
            num_generations=rows.num_generations,
            per_device_train_batch_size=rows.num_generations,
            max_completion_length=65536,
            max_steps=1,
            learning_rate=1e-2,
            beta=0.0,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_dropout=True,
            report_to=[],
            save_strategy="no",
        )
        trainer = Watched(
            model=model,
            reward_funcs=rows.reward,
            args=settings,
            train_dataset=dataset,
            processing_class=policy.tokenizer,
            rollout_func=rows.rollout_func,
        )
        trainer.train()
    assert not torch.equal(before, model.lm_head.weight), "the optimizer step moved no weight"
    return trainer.ratios
