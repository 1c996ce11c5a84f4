"""The README of an export for LiteRT."""

README = """\
# A translator for LiteRT

* `encoder.tflite`, `step.tflite`: the encoder and one step of the decoder, in
  {precision}.
* `{source}`, `{target}`: SentencePiece models of sources and of targets.
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
The search is a loop around the step: `search.py` and `model.py` of
`litert_translator` are the specification. Axes: `S` tokens of the source, `K`
beams, `L` entries of the cache, `H` heads, `d` features of a head, `V` tokens
of the vocabulary, {vocabulary_size}. `S`, `K` and `L` are dynamic:
`ResizeInputTensor`.

1. Split the text by `{source}`, cut it to {most_source} tokens, and append EOS,
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
   {most_target}. Its score is `log p / ((k + n) / (k + 1)) ** a` of `n` tokens
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
     and -1e9 elsewhere. Its first K columns are of the new tokens themselves:
     0 on the diagonal."""
STATE = """\
   * `state_0`, `(K, D)`, ...: the recurrent state of each hypothesis, first
     0."""
NEW_CACHE = "the new `keys_0` and `values_0`, `(H, K, d)`, and so on"
NEW_STATE = "the new `state_0`, and so on"


def describe(config: dict, is_recurrent: bool) -> str:
    """Returns the README of a folder with this `config.json`."""
    return README.format(
        **config,
        **config["search"],
        source=config["tokenizer"],
        target=config["target_tokenizer"],
        most_source=config["max_source_length"] - 1,
        most_target=config["max_target_length"],
        state=STATE if is_recurrent else CACHE,
        new=NEW_STATE if is_recurrent else NEW_CACHE,
    )
