"""Writes a trained model as files for LiteRT.

    EXPORT_DIR/1/encoder.tflite, step.tflite, tokenizer.model, config.json,
                 samples.json, README.md

`litert_translator` reads them, without TensorFlow. Its search has the rules of
the SavedModel's.
"""

import dataclasses
import pathlib
from collections.abc import Sequence

from command_line.errors import UserError
from command_line.text_files import write_json
from export.bundle.file_layout import (
    LITERT_CONFIG,
    LITERT_ENCODER,
    LITERT_SAMPLES,
    LITERT_STEP,
    TARGET_TOKENIZER_FILE,
    TOKENIZER_FILE,
    list_files,
)
from export.bundle.versions import new_version
from export.bundle.warmup_requests import choose_sentences
from export.litert.conversion import convert
from export.litert.graphs import make_encoder, make_step
from export.litert.translator_loading import import_translator, load_translator
from export.model.request_languages import find_ids
from export.model.search import SearchSettings
from keras_transformer import SubwordTokenizer, Transformer
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID
from text_processing.language_tags import LanguageTags

TEMPLATE = pathlib.Path(__file__).with_name("README_TEMPLATE.md")


def write_litert(
    transformer: Transformer,
    protos: tuple[bytes, bytes | None],
    settings: SearchSettings,
    precision: str,
    export_dir: pathlib.Path,
    version: int | None = None,
    languages: LanguageTags | None = None,
    samples: Sequence[dict] = (),
) -> pathlib.Path:
    """Writes the graphs, the tokenizers, the settings of the search, and samples.

    `protos` are the SentencePiece models of sources and of targets, the second
    `None` if they share one. The precision is one of `convert`; the version `None`
    takes the next number; the `languages` are those of `read_languages`, and the
    `samples` those of `read_notes`.
    """
    import_translator()  # Before the work.
    source, target = protos
    names = [TOKENIZER_FILE, TARGET_TOKENIZER_FILE if target else TOKENIZER_FILE]
    tokenizer = SubwordTokenizer(source, target)
    config = make_config(transformer, tokenizer, names, settings, precision)
    config["languages"] = languages and describe_languages(languages, tokenizer)
    length = config["max_source_length"]
    try:
        step = make_step(
            transformer,
            config["max_target_length"],
            config["num_candidates"],
            config["forbidden_ids"],
            settings,
            precision,
        )
    except ValueError as error:  # The layer or the head does not exist.
        raise UserError(str(error)) from None
    encoder = make_encoder(transformer, length, precision)
    with new_version(export_dir, LITERT_STEP, version) as (folder, part):
        for name, graph in ((LITERT_ENCODER, encoder), (LITERT_STEP, step)):
            (part / name).write_bytes(convert(graph, precision))
        for name, proto in zip(names, protos, strict=True):
            if proto:
                (part / name).write_bytes(proto)
        write_json(part / LITERT_CONFIG, config)
        sentences = choose_sentences(samples, tokenizer)
        translator, answers = load_translator(part), []
        for i, text in enumerate(sentences):
            codes = languages.example_inputs(i) if languages else {}
            (found,) = translator.for_languages(**codes).translate([text])
            answer = {"translation": found.text, "score": found.score}
            answers.append({"source": text, **answer, "languages": codes})
        write_json(part / LITERT_SAMPLES, answers)
        readme = TEMPLATE.read_text("utf-8").format(
            **config, **config["search"], most_source=length - 1
        )
        (part / "README.md").write_text(readme)
        config["files"] = list_files(part)
        write_json(part / LITERT_CONFIG, config)
    return folder


def describe_languages(languages: LanguageTags, tokenizer: SubwordTokenizer) -> dict:
    """Returns the tags as `litert_translator.languages` reads them: ids by code."""
    of_sides = {"source_tags": False, "target_tags": languages.is_forced}
    found = dataclasses.asdict(languages)
    for side, is_forced in of_sides.items():
        ids = find_ids(found[side], tokenizer, is_forced)
        found[side] = dict(zip(found[side], ids, strict=True))
    return found


def make_config(transformer, tokenizer, names, settings, precision) -> dict:
    """Returns the content of `config.json`, without the digests."""
    padded = range(tokenizer.vocabulary_size, transformer.vocabulary_size)
    length = transformer.sequence_length
    has_any_length = transformer.architecture.positions == "sine"
    beams = settings.beam_size
    return {
        "precision": precision,
        "tokenizer": names[0],
        "target_tokenizer": names[1],
        "max_source_length": length,
        "max_target_length": length + has_any_length * settings.max_extra_length,
        "bos_id": BOS_ID,
        "eos_id": EOS_ID,
        "vocabulary_size": transformer.vocabulary_size,
        "forbidden_ids": [PADDING_ID, BOS_ID, *padded],
        # A greedy search needs the best token only.
        "num_candidates": 2 * beams if beams > 1 else 1,
        "source_language": settings.source_language,
        "search": {
            name: getattr(settings, name)
            for name in (
                "beam_size",
                "length_penalty",
                "penalty_offset",
                "max_extra_length",
                "no_repeat_ngram",
                "min_length",
            )
        },
    }
