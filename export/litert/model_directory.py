"""Writes a trained model as files for LiteRT.

    EXPORT_DIR/1/encoder.tflite, step.tflite, tokenizer.model, config.json,
                 samples.json, README.md

`litert_translator` reads them, without TensorFlow. Its search has the rules of
the SavedModel's.
"""

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
from export.model.search import SearchSettings
from keras_transformer import SubwordTokenizer, Transformer
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID

README = """\
# A translator for LiteRT

* `encoder.tflite`, `step.tflite`: the encoder and one step of the decoder, in
  {precision}.
* `{tokenizer}`, `{target_tokenizer}`: SentencePiece models of sources and of targets.
* `config.json`: settings of the search, and the SHA-256 of each file.
* `samples.json`: sentences with the model's translations.

## Python

The package `litert_translator` of keras_transformer needs LiteRT, SentencePiece
and NumPy, but neither TensorFlow nor Keras. From a checkout of
keras_transformer:

```
pip install ./litert_translator
```

```python
import litert_translator

translator = litert_translator.Translator("path/of/this/folder")
for translation in translator.translate(["A sentence."]):
    print(translation.text, translation.score)
```

## JavaScript

`python -m export.page`, in a checkout of keras_transformer, writes a folder of
static files that translates in a browser; its `translator.js` is a module for
other pages. `docs/device.md` there says more.

## C++ and other languages

LiteRT's interpreter runs both files; all their operations are built-in ones.
The search is a loop around the step: `search.py` and `graphs.py` of
`litert_translator` are the specification. Axes: `S` tokens of the source, `K`
beams, `L` entries of the cache, `H` heads, `d` features of a head, `V` tokens
of the vocabulary, {vocabulary_size}. `S`, `K` and `L` are dynamic:
`ResizeInputTensor`.

1. Split the text by `{tokenizer}`, cut it to {most_source} tokens, and append EOS,
   {eos_id}. `encoder.tflite` turns `ids`, int32 `(S,)`, into `memory_keys_0`
   and `memory_values_0`, and so on for each layer of the decoder.
2. Call `step.tflite` for position 0, 1, and so on. Its inputs:
   * `ids`, int32 `(K,)`: the last token of each hypothesis, first BOS,
     {bos_id};
   * `position`, int32 `(1,)`;
   * `memory_keys_0` and `memory_values_0`, ...: the outputs of the encoder;
{state}
3. Its outputs: `candidates` and `log_probabilities`, `(K, C)`, the best C =
   {num_candidates} tokens of each hypothesis and their log-probabilities;
   `logits`, `(K, V)`, for a search with other rules; `attention`, `(K, S)`, the
   alignment; {new}.
4. A hypothesis ends with EOS, or at `S` + {max_extra_length} tokens, at most
   {max_target_length}. Its score is `log p / ((k + n) / (k + 1)) ** a` of `n` tokens
   with EOS, k = {penalty_offset} and a = {length_penalty}. The next step takes
   the best {beam_size} of those that have not ended.

To check this folder: `python -m export.check --export-dir ..`, from a checkout
of keras_transformer.
"""

CACHE = """\
   * `keys_0`, `(H, L, d)`, and `values_0`, ...: the keys and values of all
     earlier positions of all hypotheses, in the order of computation; the
     caller appends those that a step returns, and never moves them;
   * `mask`, float32 `(K, K + L)`: 0 where a hypothesis continues the entry,
     and -1e30 elsewhere. Its first K columns are of the new tokens themselves:
     0 on the diagonal."""
STATE = """\
   * `state_0`, `(K, D)`, ...: the recurrent state of each hypothesis, first
     0."""
NEW_CACHE = "the new `keys_0` and `values_0`, `(H, K, d)`, and so on"
NEW_STATE = "the new `state_0`, and so on"


def write_litert(
    transformer: Transformer,
    protos: tuple[bytes, bytes | None],
    settings: SearchSettings,
    precision: str,
    export_dir: pathlib.Path,
    version: int | None = None,
    samples: Sequence[dict] = (),
) -> pathlib.Path:
    """Writes the graphs, the tokenizers and the settings of the search.

    Args:
        transformer: A built `Transformer`.
        protos: Bytes of the SentencePiece model of sources, and of that of
            targets, or `None` if they share one.
        settings: Settings of the search.
        precision: As in `convert`.
        export_dir: Folder of the versions.
        version: Int, the folder's name; `None` takes the next number.
        samples: Result of `choose_samples`.
    """
    import_translator()  # Before the work.
    source, target = protos
    names = [TOKENIZER_FILE, TARGET_TOKENIZER_FILE if target else TOKENIZER_FILE]
    tokenizer = SubwordTokenizer(source, target)
    config = make_config(transformer, tokenizer, names, settings, precision)
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
        found = load_translator(part).translate(sentences)
        write_json(
            part / LITERT_SAMPLES,
            [
                {"source": text, "translation": each.text, "score": each.score}
                for text, each in zip(sentences, found, strict=True)
            ],
        )
        has_cache = transformer.architecture.decoder_mixer == "attention"
        readme = README.format(
            **config,
            **config["search"],
            most_source=length - 1,
            state=CACHE if has_cache else STATE,
            new=NEW_CACHE if has_cache else NEW_STATE,
        )
        (part / "README.md").write_text(readme)
        config["files"] = list_files(part)
        write_json(part / LITERT_CONFIG, config)
    return folder


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
