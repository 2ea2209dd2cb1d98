"""TRL's GRPOTrainer on rollouts of a running `alidade service` (docs/train-online.md).

    python grpo_trl.py --policy FOLDER --engine http://127.0.0.1:8000 --task my-task --steps 100

FOLDER is the model that vLLM serves; its files are overwritten with each step's weights. Kill it at any time and start it
again: the cursor lies in each of TRL's checkpoints.
"""

import argparse
import os

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig, GRPOTrainer

from alidade import Service
from alidade.trl import Rollouts
from alidade.vllm import reload_weights


def main(trainer_class=GRPOTrainer):
    asked = argparse.ArgumentParser()
    asked.add_argument("--policy", required=True)
    asked.add_argument("--engine", required=True)
    asked.add_argument("--service", default="runs/service", help="folder of the service")
    asked.add_argument("--task", action="append", required=True, help="a name that the service knows; one group of each a batch")
    asked.add_argument("--set", default="grpo-trl")
    asked.add_argument("--samples", type=int, default=8)
    asked.add_argument("--steps", type=int, default=10)
    asked.add_argument("--epochs", type=int, default=1)
    asked.add_argument("--rate", type=float, default=1e-6)
    asked.add_argument("--beta", type=float, default=0.0, help="what divergence from the first weights costs")
    asked.add_argument("--rows", type=int, help="rows in memory at once; all of a batch if left out")
    asked.add_argument("--seed", type=int, default=42)
    asked.add_argument("--out", default="trained")
    args = asked.parse_args()
    has_gpu = torch.cuda.is_available()
    batch = args.samples * len(args.task)
    rows = args.rows or batch

    def load(trainer, version):
        """Every process of the trainer comes here while no call is sampled; the first one has the whole weights."""
        if trainer.accelerator.is_main_process:
            trainer.accelerator.unwrap_model(trainer.model).save_pretrained(args.policy)
            reload_weights(args.engine, version)

    rollouts = Rollouts(Service(folder=args.service).set(args.set, samples=args.samples), load)
    trainer = trainer_class(
        model=AutoModelForCausalLM.from_pretrained(args.policy, dtype=torch.float32),
        processing_class=AutoTokenizer.from_pretrained(args.policy),
        train_dataset=Dataset.from_list([{"prompt": task} for task in args.task]),
        rollout_func=rollouts.rollout_func,
        reward_funcs=rollouts.reward,
        callbacks=[rollouts.callback()],
        args=GRPOConfig(
            output_dir=args.out,
            num_generations=args.samples,
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=batch // rows,
            num_iterations=args.epochs,
            max_steps=args.steps,
            max_completion_length=65536,        # what a rollout may say is bounded by the set's budgets
            learning_rate=args.rate,
            lr_scheduler_type="constant",
            beta=args.beta,
            seed=args.seed,
            disable_dropout=True,               # the model that trains is the one that sampled
            use_cpu=not has_gpu,
            bf16=False,
            gradient_checkpointing=has_gpu,
            shuffle_dataset=False,
            save_strategy="steps",
            save_steps=1,
            save_total_limit=2,
            logging_steps=1,
            report_to=[],
        ),
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(args.out) if os.path.isdir(args.out) else None)


if __name__ == "__main__":
    main()
