"""Keras callback that draws heat maps of attention (Section 3.2.3)."""

import pathlib
import warnings
from collections.abc import Callable

import keras
import matplotlib
import numpy as np
import sentencepiece
import tensorflow as tf
from keras import ops
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from keras_transformer import Transformer
from keras_transformer.masks import padding_mask
from keras_transformer.special_ids import BOS_ID
from train.data.encoded_pairs import EncodedPairs

MAX_PIECES = 40
INCHES_A_PIECE = 0.15
DPI = 80


class AttentionPictures(keras.callbacks.Callback):
    """Writes attention maps of one pair to TensorBoard after each epoch.

    It uses the weights that an export would have, those of the first replica.
    It uses no random numbers and changes nothing. Only workers that have this
    callback take part.
    """

    def __init__(
        self,
        source: list[int],
        target: list[int],
        pieces: Callable,
        log_dir: pathlib.Path,
        target_pieces: Callable | None = None,
    ):
        super().__init__()
        self._pair = (source, target)
        self._pieces = pieces, target_pieces
        self._log_dir = log_dir

    def on_train_begin(self, logs=None):
        self._writer = tf.summary.create_file_writer(str(self._log_dir))

    def on_epoch_end(self, epoch, logs=None):
        pictures = draw_attention(self.model.transformer, *self._pair, *self._pieces)
        with self._writer.as_default():
            for name, picture in pictures.items():
                tf.summary.image(f"attention/{name}", picture, step=epoch)
        self._writer.flush()

    def on_train_end(self, logs=None):
        self._writer.close()


def picture_first_pair(
    pairs: EncodedPairs, protos: tuple[bytes, bytes | None], run_dir: pathlib.Path
) -> AttentionPictures:
    """Makes the callback for the first pair."""
    pieces, *target_pieces = (
        sentencepiece.SentencePieceProcessor(model_proto=proto).id_to_piece
        for proto in protos
        if proto is not None
    )
    source, target = (
        ids.flat[: ids.offsets[1]].tolist() for ids in (pairs.sources, pairs.targets)
    )
    folder = run_dir / "logs" / "attention"
    return AttentionPictures(source, target, pieces, folder, *target_pieces)


def draw_attention(
    transformer: Transformer,
    source: list[int],
    target: list[int],
    pieces: Callable,
    target_pieces: Callable | None = None,
) -> dict[str, np.ndarray]:
    """Draws the attention of a model for a source and its target.

    Args:
        transformer: The model.
        source: Ids, with EOS.
        target: Ids of the translation, with EOS.
        pieces: Function from a list of ids to their subwords.
        target_pieces: The function for targets, or `None` if both sides share
            one vocabulary.

    Returns:
        Dict from `"encoder"`, `"decoder"` (of a decoder with self-attention)
        and `"encoder_decoder"` to a picture, uint8 `(1, height, width, 4)`, as
        TensorBoard takes it: one row of maps for each layer, one column for
        each head. In a map, rows are queries and columns are keys. In the
        decoder, the query of a row predicts the subword of that row. Maps of
        longer sentences are cut to the first `MAX_PIECES` subwords.
    """
    given = [BOS_ID, *target[:-1]]
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
    to_target, to_memory = zip(*decoder_scores, strict=True)
    of_targets = target_pieces or pieces
    source, target, given = (pieces(source), of_targets(target), of_targets(given))
    maps = {
        "encoder": (encoder_scores, source, source),
        "decoder": (to_target, target, given),
        "encoder_decoder": (to_memory, target, source),
    }
    if transformer.architecture.decoder_mixer != "attention":
        del maps["decoder"]
    return {name: draw_maps(*drawn) for name, drawn in maps.items()}


def draw_maps(scores, rows: list[str], columns: list[str]) -> np.ndarray:
    """Draws the weights of all layers, `(1, H, T, S)` each, as one picture."""
    rows, columns = rows[:MAX_PIECES], columns[:MAX_PIECES]
    maps = np.stack([np.array(ops.cast(score[0], "float32")) for score in scores])[
        :, :, :MAX_PIECES, :MAX_PIECES
    ]
    # One image with a gap after each map: a plot for each map would take
    # seconds, and so would matplotlib's automatic layouts.
    maps = np.pad(maps, [(0, 0), (0, 0), (0, 1), (0, 1)], constant_values=np.nan)
    layers, heads, height, width = maps.shape
    image = maps.transpose(0, 2, 1, 3).reshape(layers * height, heads * width)

    labels = 0.3 + 0.08 * max(map(len, [*rows, *columns]))  # In inches.
    inner = [INCHES_A_PIECE * length for length in image.shape]
    size = np.array([inner[1] + labels + 0.3, inner[0] + labels + 0.3])
    figure = Figure(size, dpi=DPI)
    plot = figure.add_axes((*(labels / size), *(inner[::-1] / size)))
    blues = matplotlib.colormaps["Blues"].with_extremes(bad="silver")
    plot.imshow(image, blues, vmin=0, vmax=1, interpolation="nearest")
    # A subword may be a dollar sign.
    text = {"fontsize": 7, "parse_math": False}
    plot.set_yticks(tick_positions(layers, height), rows * layers, **text)
    plot.set_xticks(tick_positions(heads, width), columns * heads, rotation=90, **text)
    for layer in range(layers):
        middle = (layer + 0.5) * height - 1
        plot.text(
            heads * width, middle, f"layer {layer + 1}", va="center", rotation=270
        )
    for head in range(heads):
        middle = (head + 0.5) * width - 1
        plot.text(middle, -1, f"head {head + 1}", ha="center")
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        # Characters that the font lacks appear as boxes.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        canvas.draw()
    return np.array(canvas.buffer_rgba())[None]


def tick_positions(count: int, period: int) -> list[int]:
    """Returns the positions of the subwords of each map, without the gap."""
    return [i for i in range(count * period) if (i + 1) % period]
