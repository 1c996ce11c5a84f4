"""Architectures and recipes of the paper (Table 3), and small ones.

A preset named after the paper never changes.
"""

import dataclasses
import difflib


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Hyperparameters of a model; the defaults are those of base (Table 3).

    The defaults of the attributes after `norm` are also those of the paper;
    models of other systems need other values.

    Attributes:
        num_layers: Layers of each stack, `N`.
        hidden_dim: Features of a position, `d_model`.
        intermediate_dim: Inner features of the feed-forward network, `d_ff`.
        num_heads: Attention heads, `h`.
        key_dim: Features of a head's queries and keys, `d_k`.
        value_dim: Features of a head's values, `d_v`.
        dropout: `P_drop`, the share dropped in training.
        positions: `"sine"` or `"learned"` position vectors.
        norm: `"post"` or `"pre"`, the position of layer normalization.
        decoder_layers: Layers of the decoder; `None` means `num_layers`.
        use_bias: Whether the maps of attention add a bias.
        activation: Activation of the feed-forward network: `"relu"`,
            `"gelu"` or `"swish"`.
        scale_embedding: Whether embeddings are multiplied by `sqrt(d_model)`.
        logits_bias: Whether a bias is added to the logits.
        max_wavelength: Longest wavelength of the sines, divided by 2π.
        norm_epsilon: Epsilon of layer normalization.
        decoder_mixer: `"attention"`, or `"ssru"` for a recurrence instead of
            the decoder's self-attention, see `SSRU`.
        tied_output: Whether the embedding matrix of targets also computes the
            logits; otherwise these have a matrix of their own.
        position_offset: Index of the first position in the sines.
        attention_dropout: Share of the attention weights dropped in training.
        feed_forward_dropout: Share of the inner features of the feed-forward
            network dropped in training.
    """

    num_layers: int = 6
    hidden_dim: int = 512
    intermediate_dim: int = 2048
    num_heads: int = 8
    key_dim: int = 64
    value_dim: int = 64
    dropout: float = 0.1
    positions: str = "sine"
    norm: str = "post"
    decoder_layers: int | None = None
    use_bias: bool = False
    activation: str = "relu"
    scale_embedding: bool = True
    logits_bias: bool = False
    max_wavelength: float = 10_000.0
    norm_epsilon: float = 1e-6
    decoder_mixer: str = "attention"
    tied_output: bool = True
    position_offset: int = 0
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0

    @property
    def alignment_layer(self) -> int:
        """Index of the decoder layer whose attention aligns best.

        It is the last but one (Garg et al., 2019); of two layers, the last.
        """
        layers = self.num_decoder_layers
        return max(min(1, layers - 1), layers - 2)

    @property
    def num_decoder_layers(self) -> int:
        """Number of decoder layers, also if `decoder_layers` is `None`."""
        if self.decoder_layers is None:
            return self.num_layers
        return self.decoder_layers


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Hyperparameters of training; the defaults are those of base (Section 5).

    Attributes:
        label_smoothing: `ε_ls`, the probability of the wrong tokens.
        steps: Number of updates.
        warmup_steps: Number of updates in which the learning rate rises.
    """

    label_smoothing: float = 0.1
    steps: int = 100_000
    warmup_steps: int = 4_000


@dataclasses.dataclass(frozen=True)
class Preset:
    """A model and its training.

    Attributes:
        description: Where the numbers come from.
        architecture: The numbers of the model.
        recipe: The numbers of its training.
    """

    description: str
    architecture: Architecture = Architecture()
    recipe: Recipe = Recipe()

    def replace(self, **numbers) -> "Preset":
        """Returns this preset with other values of some hyperparameters."""
        recipe = {name: numbers.pop(name) for name in RECIPE_NAMES if name in numbers}
        return Preset(
            self.description,
            dataclasses.replace(self.architecture, **numbers),
            dataclasses.replace(self.recipe, **recipe),
        )

    def hyperparameters(self) -> dict:
        """Returns all hyperparameters by name, as `replace` takes them."""
        return {
            **dataclasses.asdict(self.architecture),
            **dataclasses.asdict(self.recipe),
        }


RECIPE_NAMES = tuple(f.name for f in dataclasses.fields(Recipe))


def table_3(row: str, **changes) -> Preset:
    return Preset(f"Table 3, row {row}").replace(**changes)


def own_preset(corpora: str, **changes) -> Preset:
    return Preset(f"not of the paper: for {corpora}").replace(**changes)


def mozilla_student(name: str, decoder_layers: int, hidden_dim: int, **changes):
    """Returns a student in the size of one of Mozilla's (`name` there).

    A student learns from the translations of a teacher, without dropout. Its
    decoder is a recurrence; `decoder_mixer="attention"` replaces it.
    """
    return own_preset(
        f"students in the size of Mozilla's {name}",
        decoder_layers=decoder_layers,
        hidden_dim=hidden_dim,
        key_dim=hidden_dim // 8,
        value_dim=hidden_dim // 8,
        dropout=0.0,
        decoder_mixer="ssru",
        warmup_steps=16_000,
        **changes,
    )


PRESETS = {
    "base": table_3("base"),
    "big": table_3(
        "big",
        hidden_dim=1024,
        intermediate_dim=4096,
        num_heads=16,
        dropout=0.3,
        steps=300_000,
    ),
    "a-h1": table_3("A", num_heads=1, key_dim=512, value_dim=512),
    "a-h4": table_3("A", num_heads=4, key_dim=128, value_dim=128),
    "a-h16": table_3("A", num_heads=16, key_dim=32, value_dim=32),
    "a-h32": table_3("A", num_heads=32, key_dim=16, value_dim=16),
    "b-dk16": table_3("B", key_dim=16),
    "b-dk32": table_3("B", key_dim=32),
    "c-n2": table_3("C", num_layers=2),
    "c-n4": table_3("C", num_layers=4),
    "c-n8": table_3("C", num_layers=8),
    "c-d256": table_3("C", hidden_dim=256, key_dim=32, value_dim=32),
    "c-d1024": table_3("C", hidden_dim=1024, key_dim=128, value_dim=128),
    "c-ff1024": table_3("C", intermediate_dim=1024),
    "c-ff4096": table_3("C", intermediate_dim=4096),
    "d-drop0.0": table_3("D", dropout=0.0),
    "d-drop0.2": table_3("D", dropout=0.2),
    "d-ls0.0": table_3("D", label_smoothing=0.0),
    "d-ls0.2": table_3("D", label_smoothing=0.2),
    "e-learned": table_3("E", positions="learned"),
    "tiny": own_preset(
        "corpora of some ten thousand pairs",
        num_layers=4,
        hidden_dim=128,
        intermediate_dim=256,
        num_heads=4,
        key_dim=32,
        value_dim=32,
        dropout=0.3,
        steps=8_000,
        warmup_steps=500,
    ),
    "small": own_preset(
        "corpora of some hundred thousand pairs",
        hidden_dim=256,
        intermediate_dim=1024,
        num_heads=4,
        dropout=0.2,
        steps=30_000,
        warmup_steps=2_000,
    ),
    "student-tiny": mozilla_student("tiny", 2, 256, intermediate_dim=1536),
    "student-base-memory": mozilla_student(
        "base-memory", 4, 384, intermediate_dim=1536
    ),
    "student-base": mozilla_student("base", 2, 512),
}


def find_preset(name: str) -> Preset:
    """Returns the preset called `name`.

    Raises:
        ValueError: If the name is unknown; the message gives the nearest.
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(str(name), PRESETS, n=1, cutoff=0.0)
        raise ValueError(
            f"`preset` must be one of {', '.join(PRESETS)}. "
            f"Received: preset={name!r}. The nearest is {near[0]!r}."
        )
    return PRESETS[name]
