"""Heat maps of attention while a model trains (Section 3.2.3)."""

import warnings
from collections.abc import Callable

import numpy as np
from keras import ops
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from keras_transformer import Transformer
from keras_transformer.decoding import BEGIN_ID
from keras_transformer.masks import padding_mask

INCHES_A_PIECE = 0.15
DPI = 80


def draw_attention(
    transformer: Transformer,
    source: list[int],
    target: list[int],
    pieces: Callable,
) -> dict[str, np.ndarray]:
    """Draws where a model looks as it reads a source and writes its target.

    Args:
        transformer: The model. What exceeds its `sequence_length` is left out.
        source: Ids, the end symbol included.
        target: Ids of the translation, the end symbol included.
        pieces: Function from a list of ids to their pieces.

    Returns:
        Dict from `"encoder"`, `"decoder"` and `"encoder_decoder"` to a picture,
        uint8 `(1, height, width, 4)`, as TensorBoard takes it: a row of maps a
        layer, a column a head. A row of a map is what looks, a column what is
        looked at.
    """
    limit = transformer.sequence_length
    source, target = source[:limit], target[:limit]
    given = [BEGIN_ID, *target[:-1]]
    source_ids, given_ids = np.array([source]), np.array([given])
    memory, encoder_scores = transformer.encode(
        source_ids, training=False, return_attention_scores=True
    )
    _, decoder_scores = transformer.decode_states(
        given_ids,
        memory,
        padding_mask(source_ids),
        return_attention_scores=True,
        training=False,
    )
    own, to_memory = zip(*decoder_scores, strict=True)
    source, target, given = pieces(source), pieces(target), pieces(given)
    return {
        "encoder": draw_maps(encoder_scores, source, source),
        "decoder": draw_maps(own, target, given),
        "encoder_decoder": draw_maps(to_memory, target, source),
    }


def draw_maps(scores, rows: list[str], columns: list[str]) -> np.ndarray:
    """Draws the weights of all layers, `(1, H, T, S)` each, as one picture."""
    maps = [np.array(ops.cast(score[0], "float32")) for score in scores]
    size = (len(maps), len(maps[0]))
    # In inches; the layouts that matplotlib finds by itself take seconds.
    labels = 0.5 + 0.08 * max(map(len, [*rows, *columns]))
    height = labels + 0.4 + size[0] * max(1, INCHES_A_PIECE * len(rows))
    width = labels + 0.1 + size[1] * max(1, INCHES_A_PIECE * len(columns))
    figure = Figure((width, height), dpi=DPI)
    figure.subplots_adjust(
        left=labels / width,
        right=1 - 0.1 / width,
        bottom=labels / height,
        top=1 - 0.4 / height,
        wspace=0.08,
        hspace=0.08,
    )
    axes = figure.subplots(*size, sharex=True, sharey=True, squeeze=False)
    text = {"fontsize": 7, "parse_math": False}  # A piece may be a dollar.
    for layer, row in enumerate(axes):
        row[0].set_ylabel(f"layer {layer + 1}")
        row[0].set_yticks(range(len(rows)), rows, **text)
        for head, plot in enumerate(row):
            plot.imshow(
                maps[layer][head], "Blues", vmin=0, vmax=1, aspect="auto"
            )
    for head in range(size[1]):
        axes[0][head].set_title(f"head {head + 1}")
        axes[-1][head].set_xticks(
            range(len(columns)), columns, rotation=90, **text
        )
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        # A script that the font lacks is drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        canvas.draw()
    return np.array(canvas.buffer_rgba())[None]
