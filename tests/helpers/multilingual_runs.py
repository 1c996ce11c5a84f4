"""Run folders of random models of several languages."""

import dataclasses
import json

import keras

from keras_transformer import Transformer
from tests.helpers.example_sentences import SENTENCES
from text_processing.language_tags import LanguageTags
from train.data.corpus import Pairs
from train.data.vocabulary import learn_vocabulary

SIZE = 340
TAGS = {code: f"▁<2{code}>" for code in ("de", "en", "fr", "pt")}
# As `python -m train` trains one, and as M2M-100 is.
OWN = LanguageTags({}, {code: TAGS[code] for code in ("de", "fr", "pt")})
FORCED = LanguageTags(TAGS, TAGS, is_forced=True)


class TaggedPairs(Pairs):
    """Pairs whose vocabulary has all tags."""

    def symbols(self):
        return list(TAGS.values())


def write_run(folder, languages=None):
    """Writes a run folder; all have the same weights and vocabulary."""
    folder.mkdir()
    proto = learn_vocabulary(TaggedPairs(SENTENCES * 3, SENTENCES * 3), SIZE)
    (folder / "tokenizer.model").write_bytes(proto)
    keras.utils.set_random_seed(7)
    sizes = {"num_layers": 2, "hidden_dim": 16, "intermediate_dim": 24, "num_heads": 2}
    model = Transformer.from_preset(
        "base", vocabulary_size=SIZE, sequence_length=40, **sizes
    )
    model.build()
    # Logits far enough apart that no rounding decides; no bytes, ids 8 to 263.
    scales = [0.3 if 8 <= i < 264 else 3 for i in range(SIZE)]
    embeddings = model.embedding.embeddings
    embeddings.assign(embeddings * keras.ops.expand_dims(scales, 1))
    for weight in model.weights:  # The source matters more than the last token.
        if weight is not embeddings and len(weight.shape) > 1:
            weight.assign(3 * weight)
    model.save(folder / "model.keras")
    if languages:
        arguments = {"languages": dataclasses.asdict(languages)}
        (folder / "arguments.json").write_text(json.dumps(arguments))
    return folder
