"""Training of PyTorch's `nn.Transformer`."""

import numpy as np
import torch
from torch import nn

from benchmarks.constants import LABEL_SMOOTHING, PADDING_ID, Size


class TorchModel(nn.Module):
    """Tied embeddings, sines, `nn.Transformer`: ids to logits."""

    def __init__(self, size: Size):
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary_size, size.hidden_dim)
        self.scale = size.hidden_dim**0.5
        nn.init.normal_(self.embedding.weight, std=1 / self.scale)
        positions = sine_positions(size.length, size.hidden_dim)
        self.register_buffer("positions", torch.from_numpy(positions))
        self.dropout = nn.Dropout(size.dropout)
        self.transformer = nn.Transformer(
            size.hidden_dim,
            size.num_heads,
            size.num_layers,
            size.num_layers,
            size.intermediate_dim,
            size.dropout,
            batch_first=True,
        )
        # As in the paper: no dropout in attention or between the two maps.
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if hasattr(module, "linear1"):
                module.dropout = nn.Identity()

    def embed(self, ids):
        x = self.embedding(ids) * self.scale + self.positions[: ids.shape[1]]
        return self.dropout(x)

    def forward(self, source_ids, target_ids):
        length = target_ids.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        source_padding = source_ids == PADDING_ID
        states = self.transformer(
            self.embed(source_ids),
            self.embed(target_ids),
            tgt_mask=future,
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=target_ids == PADDING_ID,
            memory_key_padding_mask=source_padding,
            tgt_is_causal=True,
        )
        return states @ self.embedding.weight.T


def load(size: Size, precision: str):
    """Returns functions that prepare a batch, and train on it some times."""
    torch.manual_seed(0)
    model = TorchModel(size).train()
    optimizer = torch.optim.Adam(
        model.parameters(), 1e-4, (0.9, 0.98), 1e-9, fused=True
    )
    is_mixed = precision == "bfloat16"

    def step(batch):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            logits = model(batch["source_ids"], batch["target_ids"])
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1).float(),
            batch["labels"].flatten(),
            ignore_index=PADDING_ID,
            label_smoothing=LABEL_SMOOTHING,
        )
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    def update(batch, steps):
        return [step(batch) for _ in range(steps)][-1]

    return prepare, update


def prepare(batch: dict) -> dict:
    names = ("source_ids", "target_ids", "labels")
    return {name: torch.from_numpy(batch[name]).long() for name in names}


def sine_positions(length: int, width: int) -> np.ndarray:
    """Returns the position vectors of Section 3.5, `(length, width)`."""
    rates = 10_000.0 ** (-np.arange(0, width, 2) / width)
    angles = np.arange(length)[:, None] * rates
    both = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return both.reshape(length, width).astype(np.float32)
