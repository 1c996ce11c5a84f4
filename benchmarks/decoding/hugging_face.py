"""Runs Hugging Face's Marian model of the same size, with random weights."""

import json
import pathlib
from collections.abc import Callable

import torch
import transformers

from benchmarks.shared.model_sizes import BOS_ID, EOS_ID, PADDING_ID


def make(
    folder: pathlib.Path, beam_size: int, precision: str
) -> Callable[[dict], list[list[int]]]:
    torch.manual_seed(0)
    size = json.loads((folder / "size.json").read_text())
    model = transformers.MarianMTModel(make_config(size)).eval()
    model.to(getattr(torch, precision))

    def translate(batch):
        rows = [torch.tensor(row) for row in batch["source_ids"]]
        ids = torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=PADDING_ID
        )
        with torch.inference_mode():
            found = model.generate(
                ids,
                attention_mask=(ids != PADDING_ID).long(),
                num_beams=beam_size,
                do_sample=False,
                min_new_tokens=batch["length"],
                max_new_tokens=batch["length"],
            )
        return found[:, 1:].tolist()  # Without BOS.

    return translate


def make_config(size: dict) -> transformers.MarianConfig:
    return transformers.MarianConfig(
        vocab_size=size["vocabulary_size"],
        d_model=size["hidden_dim"],
        encoder_layers=size["num_layers"],
        decoder_layers=size["num_layers"],
        encoder_attention_heads=size["num_heads"],
        decoder_attention_heads=size["num_heads"],
        encoder_ffn_dim=size["intermediate_dim"],
        decoder_ffn_dim=size["intermediate_dim"],
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PADDING_ID,
        eos_token_id=EOS_ID,
        forced_eos_token_id=None,
        decoder_start_token_id=BOS_ID,
    )
