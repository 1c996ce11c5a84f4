"""Keras callback that logs BLEU and chrF of the validation set."""

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
from text_processing.preprocessing_signs import TAG
from train.data.corpus import Pairs
from train.data.encoded_pairs import Ids
from train.loop.training_model import transformer_of
from train.run.early_stopping import ValidationOptions

BATCH_ROWS = 64
MAX_EXTRA_LENGTH = 50  # Section 6.1.
NUM_SAMPLES = 5
PENALTY_OPTIONS = ("length_penalty", "penalty_offset")


class ValidationBleu(keras.callbacks.Callback):
    """Translates the validation set; adds `bleu` and `chrf` to `fit`'s logs.

    It translates with the run's length penalty, and with the weights that an
    export would have, those of the first replica. It takes a `TrainingModel` as
    well as a `Transformer` that the user compiled. sacreBLEU computes the scores on
    the original text.

    Args:
        pairs: The text of the validation set.
        protos: Bytes, the SentencePiece models of sources and of targets; the
            second is `None` if both sides share one.
        options: Epochs from one BLEU to the next (default: 1) and beam size, or
            `None` for the defaults.
        groups: Dict from the name of two languages to sacreBLEU's name of BLEU's
            tokenizer and the indices of their pairs; `bleu` is then the mean, and
            `bleu_NAME` that of one. `None` for one group.
        decoding: Dict of `SearchOptions` of the run, whose length penalty is taken.
        is_tagged: Whether sources begin with the tag of a language.
    """

    def __init__(
        self,
        pairs: Pairs,
        protos: tuple[bytes, bytes | None],
        options: ValidationOptions | None = None,
        groups: dict[str, tuple[str, list[int]]] | None = None,
        decoding: dict[str, float] | None = None,
        is_tagged: bool = False,
    ):
        super().__init__()
        self._pairs = pairs
        processor = sentencepiece.SentencePieceProcessor(model_proto=protos[0])
        sequences = processor.encode(pairs.sources, add_eos=True)
        ends = np.cumsum([0] + [len(ids) for ids in sequences])
        self._sources = Ids(np.concatenate(sequences), ends)
        self._tokenizer = SubwordTokenizer(*protos)
        self._is_tagged = is_tagged
        options, decoding = options or ValidationOptions(), decoding or {}
        self._every = options.validate_bleu or 1
        penalty = {name: decoding[name] for name in PENALTY_OPTIONS if name in decoding}
        self._options = SearchOptions(
            options.validation_beam_size, num_hypotheses=1, **penalty
        )
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

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self._every == 0:
            logs.update(self.score(self.translate()))

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
