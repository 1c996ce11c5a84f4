"""Scores the final model on the validation set and writes `model.json`."""

import hashlib
import pathlib

import tensorflow as tf

from command_line.text_files import write_json
from keras_transformer import Transformer
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.data.encoded_pairs import EncodedPairs
from train.loop.training_model import TrainingModel
from train.loop.update_options import UpdateOptions
from train.monitoring.validation_bleu import ValidationBleu


def make_scored_model(
    transformer: Transformer, label_smoothing: float
) -> TrainingModel:
    """Returns a model that `score_model` takes, on one device.

    Args:
        transformer: The model; its weights may be replaced between scores.
        label_smoothing: Float, as in the training loss.
    """
    training_model = TrainingModel(transformer, label_smoothing)
    training_model.build()
    training_model.compile(jit_compile=False)
    return training_model


def score_model(
    training_model: TrainingModel,
    pairs: EncodedPairs,
    update_options: UpdateOptions,
    num_replicas: int = 1,
) -> dict[str, float]:
    """Returns loss, perplexity and accuracy on the validation set.

    Args:
        training_model: Result of `make_scored_model`.
        pairs: The validation set.
        update_options: Options of training.
        num_replicas: Int, number of devices that shared a batch in training;
            one of them now computes their parts in turn.
    """
    plan = BatchPlan(pairs, update_options.batch_tokens, update_options.seed)
    limit = update_options.max_tokens_per_replica
    if limit is None and num_replicas > 1:
        limit = -(-update_options.batch_tokens // num_replicas)
    strategy = tf.distribute.get_strategy()
    results = training_model.evaluate(
        make_dataset(plan, strategy, 0, plan.batches_per_pass, limit),
        steps=plan.batches_per_pass,
        verbose=0,
        return_dict=True,
    )
    names = ("loss", "perplexity", "accuracy")
    return {name: float(results[name]) for name in names}


def score_translations(training_model: TrainingModel, bleu: ValidationBleu) -> dict:
    """Returns the scores of translations, and some `"samples"` of them."""
    bleu.set_model(training_model)
    translations = bleu.translate()
    scores = bleu.score(translations)
    scores["signature"] = bleu.signature
    return {"validation": scores, "samples": bleu.samples(translations)}


def write_scores(path: pathlib.Path, paths: list[str], scores: dict) -> None:
    """Prints scores, and writes them beside the model, in `model.json`.

    Args:
        path: The model's file.
        paths: Prefixes of the averaged checkpoints.
        scores: Dict of `"validation"`, scores by name, and maybe `"samples"`.
    """
    description = {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "checkpoints": [pathlib.Path(prefix).name for prefix in paths],
        **scores,
    }
    write_json(path.with_suffix(".json"), description)
    found = scores["validation"]
    print(
        f"on the validation set it has a loss of {found['loss']:.4f}, "
        f"perplexity {found['perplexity']:.4g}, "
        f"accuracy {found['accuracy']:.2%}"
    )
    if "bleu" in found:
        print(
            f"BLEU {found['bleu']:.2f} ({found['signature']}), chrF {found['chrf']:.2f}"
        )
