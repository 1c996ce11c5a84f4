"""Runs an export for CTranslate2, a C++ engine for Transformers."""

import collections
import json
import pathlib
from typing import NamedTuple

import numpy as np

from command_line.cpu_count import count_processors
from export.ctranslate2.model_directory import (
    END,
    SETTINGS_FILE,
    import_libraries,
    read_tokenizers,
)
from keras_transformer import SubwordTokenizer
from text_processing.language_tags import LanguageTags
from translate.runtime.bounded_batches import count_batches
from translate.runtime.runtime import Runtime


class Hypothesis(NamedTuple):
    """A translation: its subwords with EOS, score and whether it was cut."""

    pieces: list[str]
    score: float
    truncated: bool


class CTranslate2Runtime(Runtime):
    """A CTranslate2 directory, with the default signature of a SavedModel.

    CTranslate2's length penalty, `log p / n ** α`, differs from that of the
    SavedModel. So the search runs without one, and this class ranks the
    hypotheses by `log p / ((k + n) / (k + 1)) ** α`.

    Raises:
        UserError: If CTranslate2 is not installed.
    """

    signatures = ("serving_default",)

    def __init__(self, folder: pathlib.Path):
        ctranslate2, sentencepiece = import_libraries()
        self._tokenizer, self._target_tokenizer = (
            sentencepiece.SentencePieceProcessor(model_proto=proto)
            for proto in read_tokenizers(folder)
        )
        self._subword_tokenizer = SubwordTokenizer(*read_tokenizers(folder))
        self._settings = json.loads((folder / SETTINGS_FILE).read_text())
        if languages := self._settings["languages"]:
            self.languages = LanguageTags(**languages)
        self.in_flight = count_batches()
        self._model = ctranslate2.Translator(
            str(folder),
            device="cpu",
            # A thread a batch: threads that share a batch wait for each
            # other, which is slow on a busy machine.
            inter_threads=count_processors(),
            intra_threads=1,
        )

    def ask(
        self, signature: str, inputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        self.require(signature)
        sources, source_cut = self._tokenize(inputs["text"])
        best = self._translate(sources)
        texts = [self._detokenize(hypothesis.pieces) for hypothesis in best]
        return {
            "translation": np.array(texts, object),
            "score": np.array([hypothesis.score for hypothesis in best], np.float32),
            "truncated": np.array(source_cut, bool)
            | np.array([hypothesis.truncated for hypothesis in best], bool),
        }

    @property
    def _tags(self):
        """The tags before sources, and those that translations begin with."""
        if self.languages is None:
            return [], []
        return self.languages.find(*self.languages.complete(*self._codes))

    def _tokenize(self, text):
        """Returns the subwords of each text, and whether each was cut."""
        before, _ = self._tags
        limit = self._settings["max_source_length"] - len(before)
        sources, cut = [], []
        for line in text:
            ids = self._tokenizer.encode(line.replace(b"\0", b" "))
            pieces = self._tokenizer.id_to_piece(ids[: limit - 1])
            sources.append([*before, *pieces, END])
            cut.append(len(ids) >= limit)
        return sources, cut

    def _detokenize(self, pieces):
        _, forced = self._tags
        ids = self._target_tokenizer.piece_to_id(pieces[len(forced) : -1])
        text = self._target_tokenizer.decode(ids)
        if "\N{REPLACEMENT CHARACTER}" in text:  # The tokenizer drops it, but is slow.
            return self._subword_tokenizer.detokenize([ids]).numpy()[0]
        return text.encode()

    def _translate(self, sources):
        """Returns the best `Hypothesis` of each source.

        CTranslate2 has one length limit for a batch, but our limit depends on
        the sentence. So sources of equal length form a batch, one on each CPU.
        """
        before, forced = self._tags
        best = [Hypothesis([*forced, END], 0.0, False)] * len(sources)
        groups = collections.defaultdict(list)
        for place, source in enumerate(sources):
            if len(source) > len(before) + 1:
                groups[len(source)].append(place)
        running = [
            self._search([sources[place] for place in places])
            for places in groups.values()
        ]
        for places, results in zip(groups.values(), running, strict=True):
            for place, result in zip(places, results, strict=True):
                result = result.result()
                pairs = zip(result.hypotheses, result.scores, strict=True)
                hypotheses = [self._score(sources[place], *pair) for pair in pairs]
                best[place] = max(hypotheses, key=lambda each: each.score)
        return best

    def _search(self, sources):
        """Starts the translation of sources of equal length."""
        settings, (_, forced) = self._settings, self._tags
        beams = settings["beam_size"]
        limit = len(sources[0]) + settings["max_extra_length"]
        return self._model.translate_batch(
            sources,
            target_prefix=[forced] * len(sources) if forced else None,
            beam_size=beams,
            # At most K hypotheses were cut at the limit, without EOS;
            # with 2 K results they cannot displace the K best others.
            num_hypotheses=2 * beams if beams > 1 else 1,
            patience=2,
            length_penalty=0,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=min(limit, settings["max_target_length"]),
            suppress_sequences=[[piece] for piece in settings["forbidden"]],
            return_end_token=True,
            return_scores=True,
            asynchronous=True,
        )

    def _score(self, source, pieces, log_probability):
        """Converts a result of CTranslate2 to a `Hypothesis`."""
        truncated = pieces[-1] != END
        if truncated:
            # EOS takes the last position, and its probability counts.
            pieces = [*pieces[:-1], END]
            scored = self._model.score_batch(
                [source], [pieces[:-1]], max_input_length=0
            )
            log_probability = sum(scored[0].log_probs[len(self._tags[1]) :])
        offset = self._settings["penalty_offset"]
        penalty = (offset + len(pieces)) / (offset + 1)
        penalty **= self._settings["length_penalty"]
        return Hypothesis(pieces, log_probability / penalty, truncated)
