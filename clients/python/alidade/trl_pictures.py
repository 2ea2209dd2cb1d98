"""TRL's GRPOTrainer and SFTTrainer for rollouts that saw pictures.

    Trainer = grpo_trainer()                        # or grpo_trainer(MyTrainer), a GRPOTrainer of your own
    Trainer(model=..., processing_class=AutoProcessor.from_pretrained(MODEL), rollout_func=rows.rollout_func, ...).train()

    dataset = load_dataset("json", data_files="sft.jsonl", split="train")      # alidade export --format trl-sft
    sft_trainer("media")(model=..., processing_class=AutoProcessor.from_pretrained(MODEL), train_dataset=dataset, ...).train()

TRL takes pictures only from its data set. For GRPO all rollouts of a prompt share them there, and a `rollout_func` gives none. So our
`rollout_func`s hand them to the trainer itself, which puts their tensors into each forward pass. For SFT, TRL would tokenise messages
anew. So our trainer makes its batches of the sampled ids. A trainer that cannot do this is refused: it would train the pads of a
picture as text.
"""

from .media import MediaError, tensors

TENSORS = ("pixel_values", "image_grid_thw")


def grpo_trainer(base=None):
    """Returns the trainer's class. `base`: the GRPOTrainer that it extends, by default TRL's own."""
    import torch
    from transformers import Trainer
    from trl import GRPOTrainer

    class PicturedGRPOTrainer(base or GRPOTrainer):
        _shown = None

        def take_pictures(self, rows):
            """Called by `rollout_func` with pairs in the order of the batch: a row, and the place of its pictures."""
            made = [tensors(row, pictures, self.processing_class) for row, pictures in rows]
            if not any(made):
                return
            joined = {name: torch.cat([one[name] for one in made if one]) for name in TENSORS}
            self._shown = {
                **Trainer._prepare_inputs(self, joined),
                "num_images": [len(row.get("media") or []) for row, _ in rows],
                "pads": sorted({_pad_of(row) for row, _ in rows if row.get("media")}),
            }

        def _generate_and_score_completions(self, inputs):
            self._shown = None
            try:
                output = super()._generate_and_score_completions(inputs)
                if self._shown is None:
                    return output
                return {**output, **self._pictures_of(torch.cat([output["prompt_ids"], output["completion_ids"]], 1))}
            finally:
                self._shown = None

        def _get_per_token_logps_and_entropies(self, model, input_ids, attention_mask, logits_to_keep, batch_size=None, **given):
            if self._shown is not None:
                given = {**given, **self._pictures_of(input_ids)}
            if given.get("num_images") is None or given.get("image_grid_thw") is None:
                return super()._get_per_token_logps_and_entropies(model, input_ids, attention_mask, logits_to_keep, batch_size, **given)
            parts = []
            # TRL can cut batches itself, but would give empty tensors to a part without pictures.
            for start in range(0, len(input_ids), batch_size or len(input_ids)):
                of = slice(start, start + (batch_size or len(input_ids)))
                parts.append(super()._get_per_token_logps_and_entropies(model, input_ids[of], attention_mask[of], logits_to_keep, **_part(given, of)))
            logps, entropies, losses = zip(*parts)
            return (
                torch.cat(logps),
                torch.cat(entropies) if entropies[0] is not None else None,
                torch.stack(losses).mean() if losses[0] is not None else None,
            )

        def _pictures_of(self, input_ids):
            shown = {name: self._shown[name] for name in (*TENSORS, "num_images")}
            kinds = torch.zeros_like(input_ids)
            for row, count in enumerate(shown["num_images"]):
                if count > 0:
                    kinds[row] = torch.isin(input_ids[row], torch.tensor(self._shown["pads"], device=input_ids.device))
            return {**shown, "mm_token_type_ids": kinds}

    return PicturedGRPOTrainer


def sft_trainer(pictures, base=None):
    """Returns the trainer's class. `pictures`: the folder `media/` beside the exported file. `base`: the SFTTrainer that it extends, by
    default TRL's own. No row is cut, whatever `max_length` is, for a cut row would lose pictures."""
    from trl import SFTTrainer

    class PicturedSFTTrainer(base or SFTTrainer):
        def __init__(self, *arguments, processing_class, **given):
            batches = SftBatches(processing_class, pictures)
            super().__init__(*arguments, processing_class=processing_class, data_collator=batches, **given)

        def _set_signature_columns_if_needed(self):
            self._signature_columns = ["input_ids", "labels", "media"]

        def _prepare_dataset(self, dataset, *_):
            return dataset

    return PicturedSFTTrainer


class SftBatches:
    """The collator: rows of `trl-sft` as one batch, with the tensors of their pictures."""

    def __init__(self, processor, pictures):
        self._processor, self._pictures = processor, pictures

    def __call__(self, rows):
        import torch
        from torch.nn.utils.rnn import pad_sequence

        made = [tensors(row, self._pictures, self._processor) for row in rows]

        def padded(lists, fill):
            return pad_sequence([torch.as_tensor(one) for one in lists], batch_first=True, padding_value=fill)

        ids = [row["input_ids"] for row in rows]
        batch = {
            "input_ids": padded(ids, 0),
            "attention_mask": padded([[1] * len(one) for one in ids], 0),
            "labels": padded([row["labels"] for row in rows], -100),
        }
        if any(made):
            kinds = [one["mm_token_type_ids"] if one else [0] * len(row) for one, row in zip(made, ids)]
            joined = {name: torch.cat([one[name] for one in made if one]) for name in TENSORS}
            batch |= {**joined, "mm_token_type_ids": padded(kinds, 0)}
        return batch


def hand_over(trainer, rows):
    """Gives the trainer the pictures of its batch. `rows`: pairs of a row and the place of its pictures."""
    take = getattr(trainer, "take_pictures", None)
    if take is not None:
        take(rows)
    elif any(row.get("media") for row, _ in rows):
        raise MediaError(f"rollouts show pictures, and {type(trainer).__name__} takes none from a rollout_func: train with alidade.trl_pictures.grpo_trainer()")


def _pad_of(row):
    """Returns the token that fills the places of pictures. If a row has another token there, it was refused before."""
    return [*row["prompt_ids"], *row["completion_ids"]][row["media"][0]["start"]]


def _part(given, of):
    """Returns the arguments for some rows of the batch, without picture tensors if these rows have no pictures."""
    counts = given["num_images"]
    first, last = sum(counts[: of.start]), sum(counts[: of.stop])
    kinds = given.get("mm_token_type_ids")
    part = {**given, "num_images": counts[of], "mm_token_type_ids": None if kinds is None else kinds[of]}
    if first == last:
        return {name: value for name, value in part.items() if name not in (*TENSORS, "num_images", "mm_token_type_ids")}
    patches = given["image_grid_thw"].prod(-1).cumsum(0).tolist()
    from_patch = patches[first - 1] if first > 0 else 0
    return {**part, "image_grid_thw": given["image_grid_thw"][first:last], "pixel_values": given["pixel_values"][from_patch : patches[last - 1]]}
