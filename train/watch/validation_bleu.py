"""BLEU of the validation set while a model trains (Section 6.1)."""

import pathlib

import keras
import numpy as np
import sacrebleu
import sentencepiece
import tensorflow as tf

from keras_transformer import SubwordTokenizer
from keras_transformer.masks import END_ID
from keras_transformer.masks import padding_mask
from keras_transformer.search.graph_transformer import graph_search_translations
from keras_transformer.search.options import SearchOptions
from train.data.corpus import Corpus
from train.data.corpus import Pairs
from train.data.corpus import read_all
from train.data.vocabulary import Ids
from train.run.best import Quality

BATCH_ROWS = 64
MAX_EXTRA_LENGTH = 50  # Section 6.1.
NUM_SAMPLES = 5


class ValidationBleu(keras.callbacks.Callback):
    """Translates the validation set and adds `bleu` to what `fit` logs.

    It translates as an export with its defaults does, and with the weights as
    they are: of replicas, the first one's. Some translations go to TensorBoard
    as text. The BLEU is sacreBLEU's default, on the text as it was read.

    Args:
        pairs: The text of the validation set.
        model_proto: Bytes, the SentencePiece model.
        log_dir: Folder for TensorBoard.
        every: Positive int, rounds from one BLEU to the next. Rounds between
            log none.
        beam_size: Positive int, beams a sentence; 1 is greedy search.
    """

    def __init__(
        self,
        pairs: Pairs,
        model_proto: bytes,
        log_dir: pathlib.Path,
        every: int = 1,
        beam_size: int = 4,
    ):
        super().__init__()
        self._pairs = pairs
        processor = sentencepiece.SentencePieceProcessor(
            model_proto=model_proto
        )
        sequences = processor.encode(pairs.sources, add_eos=True)
        ends = np.cumsum([0] + [len(ids) for ids in sequences])
        self._sources = Ids(np.concatenate(sequences), ends)
        self._tokenizer = SubwordTokenizer(model_proto)
        self._log_dir = log_dir
        self._every = every
        self._beam_size = beam_size
        self._metric = sacrebleu.BLEU()
        self.before_batch = lambda: None  # May exit.
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
        score = self._metric.corpus_score(translations, [self._pairs.targets])
        logs["bleu"] = score.score
        table = sample_table(self._pairs, translations)
        with self._writer.as_default():
            tf.summary.text("translations", table, step=epoch)
        self._writer.flush()

    def on_train_end(self, logs=None):
        self._writer.close()

    def translate(self) -> list[str]:
        """Returns a translation of each source, in their order."""
        limit = self.model.transformer.sequence_length
        lengths = np.minimum(self._sources.lengths, limit)
        order = np.argsort(lengths, kind="stable")
        translations = [""] * len(order)
        for start in range(0, len(order), BATCH_ROWS):
            self.before_batch()
            rows = order[start : start + BATCH_ROWS]
            ids = self._sources.pad(rows, lengths[rows].max())
            ids[self._sources.lengths[rows] > limit, -1] = END_ID
            for i, text in zip(rows, self._search(ids).numpy(), strict=True):
                # A model may spell a line end in bytes; a line stays a line.
                line = b" ".join(text.splitlines())
                translations[i] = line.decode("utf-8", errors="replace")
        return translations

    def _search_batch(self, source_ids):
        real = padding_mask(source_ids)
        lengths = tf.reduce_sum(tf.cast(real, tf.int32), axis=1)
        # The end symbol alone is no text: its translation ends at once.
        limits = tf.where(lengths == 1, 1, lengths + MAX_EXTRA_LENGTH)
        options = SearchOptions(self._beam_size, num_hypotheses=1)
        best = graph_search_translations(
            self.model.transformer, source_ids, limits, options
        )
        return self._tokenizer.detokenize(best.ids[:, 0])


def make_validation_bleu(
    quality: Quality, corpus: Corpus, proto: bytes, run_dir: pathlib.Path
) -> ValidationBleu | None:
    """Makes what `--validate-bleu` asks for.

    Args:
        quality: The options.
        corpus: The validation set.
        proto: Serialized SentencePiece model.
        run_dir: Folder of the run.
    """
    if quality.validate_bleu is None:
        return None
    return ValidationBleu(
        read_all(corpus),
        proto,
        run_dir / "logs" / "translations",
        quality.validate_bleu,
        quality.validation_beam_size,
    )


def sample_table(pairs: Pairs, translations: list[str]) -> str:
    """Returns some translations, evenly spread, as a table in Markdown."""
    lines = ["source | reference | translation", "---|---|---"]
    count = min(NUM_SAMPLES, len(pairs))
    for i in np.linspace(0, len(pairs) - 1, count, dtype=int):
        cells = (pairs.sources[i], pairs.targets[i], translations[i])
        lines.append(" | ".join(cell.replace("|", "\\|") for cell in cells))
    return "\n".join(lines)
