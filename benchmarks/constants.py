"""Sizes of the models that are measured, and the constants of all systems.

It imports nothing, so that a process that runs PyTorch holds no TensorFlow.
"""

import dataclasses

# Ids of padding, EOS and BOS, as in `train`.
PADDING_ID = 0
EOS_ID = 1
BOS_ID = 3
LABEL_SMOOTHING = 0.1
BEAM_SIZE = 4
# With another, CTranslate2's score would not be this package's.
LENGTH_PENALTY = 0.0
MAX_EXTRA_LENGTH = 50


@dataclasses.dataclass(frozen=True)
class Size:
    """A model, as `Architecture` describes it, and the batch of one update."""

    num_layers: int
    hidden_dim: int
    intermediate_dim: int
    num_heads: int
    dropout: float
    vocabulary_size: int
    rows: int  # Sentence pairs in a batch.
    length: int  # Positions of a sentence, padding included.
    decoder_layers: int | None = None
    decoder_mixer: str = "attention"

    def hyperparameters(self) -> dict:
        """Returns the arguments of `Architecture`."""
        width = self.hidden_dim // self.num_heads
        names = ("vocabulary_size", "rows", "length")
        given = {k: v for k, v in vars(self).items() if k not in names}
        return {**given, "key_dim": width, "value_dim": width}


SIZES = {
    "base": Size(6, 512, 2048, 8, 0.1, 37_000, 64, 32),
    "tiny": Size(4, 128, 256, 4, 0.3, 10_000, 256, 32),
    # That of NLLB-200 with 600 million parameters, whose vocabulary has 256,206.
    "nllb-600m": Size(12, 1024, 4096, 16, 0.1, 256_206, 8, 32),
    "check": Size(1, 16, 32, 2, 0.1, 100, 8, 8),
}
# Students as wide as Mozilla's `tiny`, with 6 layers in the encoder.
STUDENT = Size(6, 256, 1536, 8, 0.0, 8_000, 64, 32)
STUDENTS = {
    "6-6": STUDENT,
    "6-2": dataclasses.replace(STUDENT, decoder_layers=2),
    "6-2-ssru": dataclasses.replace(STUDENT, decoder_layers=2, decoder_mixer="ssru"),
}
