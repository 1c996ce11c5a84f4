"""Keras callback that logs BLEU and chrF of the validation set."""

import pathlib
import statistics

import keras
import numpy as np
import sacrebleu
import sentencepiece
import tensorflow as tf

from command_line.bleu_tokenizer import DEFAULT, make_bleu
from keras_transformer import SubwordTokenizer
from keras_transformer.masks import padding_mask
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.tensorflow.graph_transformer import search_in_graph
from keras_transformer.special_ids import EOS_ID
from text_processing.text_style import TAG
from train.data.corpus import Pairs
from train.data.encoded_pairs import Ids
from train.loop.training_model import transformer_of, updates_of
from train.run.early_stopping import ValidationOptions

BATCH_ROWS = 64
MAX_EXTRA_LENGTH = 50  # Section 6.1.
NUM_SAMPLES = 5
PENALTY_OPTIONS = ("length_penalty", "penalty_offset")


class ValidationBleu(keras.callbacks.Callback):
    """Translates the validation set; adds `bleu` and `chrf` to `fit`'s logs.

    It translates with the run's length penalty, and with the weights that an
    export would have, those of the first replica. Some translations go to
    TensorBoard as text. It takes a `TrainingModel` as well as a `Transformer`
    that the user compiled. sacreBLEU computes the scores on the original text.

    Args:
        pairs: The text of the validation set.
        model_proto: Bytes, the SentencePiece model.
        log_dir: Folder for TensorBoard.
        every: Positive int, epochs from one BLEU to the next.
        beam_size: Positive int; 1 is greedy search.
        groups: Dict from the name of two languages to sacreBLEU's name of BLEU's
            tokenizer and the indices of their pairs; `bleu` is then the mean, and
            `bleu_NAME` that of one. `None` for one group.
        target_proto: Bytes, the SentencePiece model of targets, or `None` if
            both sides share one.
        penalty: Dict of `SearchOptions` with the length penalty, if it is not
            that of the paper.
        is_tagged: Whether sources begin with the tag of a language.
    """

    def __init__(
        self,
        pairs: Pairs,
        model_proto: bytes,
        log_dir: pathlib.Path,
        every: int = 1,
        beam_size: int = 4,
        groups: dict[str, tuple[str, list[int]]] | None = None,
        target_proto: bytes | None = None,
        penalty: dict[str, float] | None = None,
        is_tagged: bool = False,
    ):
        super().__init__()
        self._pairs = pairs
        processor = sentencepiece.SentencePieceProcessor(model_proto=model_proto)
        sequences = processor.encode(pairs.sources, add_eos=True)
        ends = np.cumsum([0] + [len(ids) for ids in sequences])
        self._sources = Ids(np.concatenate(sequences), ends)
        self._tokenizer = SubwordTokenizer(model_proto, target_proto)
        self._log_dir, self._is_tagged = log_dir, is_tagged
        self._every = every
        self._options = SearchOptions(beam_size, num_hypotheses=1, **(penalty or {}))
        groups = groups or {"": (DEFAULT, range(len(pairs)))}
        self._groups = {
            name: (make_bleu(tokenize), indices)
            for name, (tokenize, indices) in groups.items()
        }
        self._search = tf.function(
            self._search_batch,
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )

    def on_train_begin(self, logs=None):
        self._writer = tf.summary.create_file_writer(str(self._log_dir))

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self._every:
            return
        translations = self.translate()
        logs.update(self.score(translations))
        table = sample_table(self.samples(translations))
        with self._writer.as_default():
            tf.summary.text("translations", table, step=updates_of(self.model))
        self._writer.flush()

    def on_train_end(self, logs=None):
        self._writer.close()

    def translate(self) -> list[str]:
        """Returns a translation of each source, in their order."""
        limit = transformer_of(self.model).sequence_length
        lengths = np.minimum(self._sources.lengths, limit)
        order = np.argsort(lengths, kind="stable")
        translations = [""] * len(order)
        for start in range(0, len(order), BATCH_ROWS):
            rows = order[start : start + BATCH_ROWS]
            ids = self._sources.pad(rows, lengths[rows].max())
            ids[self._sources.lengths[rows] > limit, -1] = EOS_ID
            for i, text in zip(rows, self._search(ids).numpy(), strict=True):
                # A model may generate line ends; each output is one line.
                line = b" ".join(text.splitlines())
                translations[i] = line.decode("utf-8", errors="replace")
        return translations

    def score(self, translations: list[str]) -> dict[str, float]:
        """Returns `"bleu"` and `"chrf"`; of several groups also those of each."""
        scores = {"bleu": {}, "chrf": {}}
        for name, (bleu, indices) in self._groups.items():
            found, references = (
                [lines[i] for i in indices]
                for lines in (translations, self._pairs.targets)
            )
            for key, metric in (("bleu", bleu), ("chrf", sacrebleu.CHRF())):
                scores[key][name] = metric.corpus_score(found, [references]).score
        means = {key: statistics.fmean(of.values()) for key, of in scores.items()}
        if len(self._groups) == 1:
            return means
        return means | {
            f"{key}_{name}": score
            for key, of in scores.items()
            for name, score in of.items()
        }

    @property
    def signature(self) -> str:
        found = [str(bleu.get_signature()) for bleu, _ in self._groups.values()]
        return ", ".join(dict.fromkeys(found))

    def _without_tag(self, source):
        return TAG.sub("", source) if self._is_tagged else source

    def samples(self, translations: list[str]) -> list[dict[str, str]]:
        """Returns some pairs, evenly spread, without tags, with their translations."""
        count = min(NUM_SAMPLES, len(self._pairs))
        return [
            {
                "source": self._without_tag(self._pairs.sources[i]),
                "reference": self._pairs.targets[i],
                "translation": translations[i],
            }
            for i in np.linspace(0, len(self._pairs) - 1, count, dtype=int)
        ]

    def _search_batch(self, source_ids):
        real = padding_mask(source_ids)
        lengths = tf.reduce_sum(tf.cast(real, tf.int32), axis=1)
        # A source of EOS alone is empty text; its translation ends at once.
        limits = tf.where(lengths == 1, 1, lengths + MAX_EXTRA_LENGTH)
        best = search_in_graph(
            transformer_of(self.model), source_ids, limits, self._options
        )
        return self._tokenizer.detokenize(best.ids[:, 0])


def make_validation_bleu(
    options: ValidationOptions,
    pairs: Pairs,
    groups: dict[str, tuple[str, list[int]]],
    protos: tuple[bytes, bytes | None],
    run_dir: pathlib.Path,
    decoding: dict,
    is_tagged: bool = False,
) -> ValidationBleu:
    source, target = protos
    return ValidationBleu(
        pairs,
        source,
        run_dir / "logs" / "translations",
        options.validate_bleu or 1,
        options.validation_beam_size,
        groups,
        target,
        {name: decoding[name] for name in PENALTY_OPTIONS if name in decoding},
        is_tagged,
    )


def sample_table(samples: list[dict[str, str]]) -> str:
    """Returns translations and their pairs as a table in Markdown."""
    lines = ["source | reference | translation", "---|---|---"]
    for sample in samples:
        cells = (cell.replace("|", "\\|") for cell in sample.values())
        lines.append(" | ".join(cells))
    return "\n".join(lines)
