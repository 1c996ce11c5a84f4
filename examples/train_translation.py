"""Trains on two text files with plain Keras, saves and translates.

    python -m examples.train_translation train.en train.es runs/plain < new.en

Every tenth pair is translated for BLEU, not trained on. The command resumes.
"""

import pathlib
import sys

import keras
import tensorflow as tf

import keras_transformer as kt
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.data.corpus import FilePairs, read_all
from train.data.encoded_corpus import encode_corpus
from train.data.vocabulary import learn_vocabulary
from train.monitoring.validation_bleu import ValidationBleu
from train.run.training_state import TrainingState

TINY = kt.PRESETS["tiny"].replace(warmup_steps=400)


def split(batch):
    """Returns inputs and labels of a batch, as plain Keras takes them."""
    ids = {name: batch[name][0] for name in batch if name != "num_tokens"}
    return ids, ids.pop("labels")


def main(files, folder, preset=TINY, epochs=10, size=4000, tokens=4096):
    keras.utils.set_random_seed(0)
    lines = list(FilePairs(*map(pathlib.Path, files)))
    training = read_all(pair for i, pair in enumerate(lines) if i % 10)
    proto = learn_vocabulary(training, size)
    encoded = encode_corpus(training, proto, 100, folder / "encoded")
    plan = BatchPlan(encoded.pairs, tokens, seed=0)
    model = kt.Transformer.from_preset(preset, size, sequence_length=100)
    model.compile_as_published(preset)
    steps = plan.batches_per_pass
    state = TrainingState(model, folder, keep=1)
    done = state.restore()
    bleu = ValidationBleu(read_all(lines[::10]), (proto, None))
    data = make_dataset(plan, tf.distribute.get_strategy(), done).map(split)
    when = {"initial_epoch": done // steps, "epochs": epochs, "shuffle": False}
    model.fit(data, steps_per_epoch=steps, callbacks=[bleu, state], **when)
    (folder / "tokenizer.model").write_bytes(proto)
    model.save(folder / "model.keras")
    return model, kt.SubwordTokenizer(proto), state.history


if __name__ == "__main__":
    model, tokenizer, _ = main(sys.argv[1:3], pathlib.Path(sys.argv[3]))
    ids = tokenizer.tokenize([*map(str.strip, sys.stdin)]).to_tensor()
    for text in tokenizer.detokenize(model.generate(ids)).numpy():
        print(text.decode())
