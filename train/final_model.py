"""Chooses, scores and writes the final model."""

import functools
import hashlib
import pathlib

import tensorflow as tf

from command_line.text_files import write_json
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.loop.training_model import TrainingModel
from train.loop.training_options import TrainingOptions
from train.monitoring.validation_bleu import ValidationBleu
from train.run.checkpoint_averaging import choose_weights, make_float32_copy, save_model
from train.run.early_stopping import EarlyStopping


def write_final_model(
    best: EarlyStopping,
    warmup_steps: int,
    training_model: TrainingModel,
    plan: BatchPlan,
    training_options: TrainingOptions,
    num_replicas: int,
    run_dir: pathlib.Path,
    bleu: ValidationBleu | None,
) -> None:
    """Chooses the final weights, and writes the model and its scores."""
    paths, step = best.choose_final(warmup_steps)
    model = make_float32_copy(training_model.transformer)
    scored = TrainingModel(model, training_model.label_smoothing)
    scored.build()
    scored.compile(jit_compile=False)
    score = functools.partial(score_model, scored, plan, training_options, num_replicas)
    paths, scores, description = choose_weights(model, paths, score, step)
    path = run_dir / "model.keras"
    save_model(path, model)
    print(f"{path} is {description}")
    written = {"validation": scores}
    if bleu:
        bleu.set_model(scored)
        translations = bleu.translate()
        scores.update(bleu.score(translations), signature=bleu.signature)
        written["samples"] = bleu.samples(translations)
    write_scores(path, paths, written)


def score_model(
    training_model: TrainingModel,
    plan: BatchPlan,
    training_options: TrainingOptions,
    num_replicas: int = 1,
) -> dict[str, float]:
    """Returns loss, perplexity and accuracy on the validation set."""
    limit = training_options.max_tokens_per_replica
    if limit is None and num_replicas > 1:
        limit = -(-training_options.batch_tokens // num_replicas)
    strategy = tf.distribute.get_strategy()
    results = training_model.evaluate(
        make_dataset(plan, strategy, 0, plan.batches_per_pass, limit),
        steps=plan.batches_per_pass,
        verbose=0,
        return_dict=True,
    )
    names = ("loss", "perplexity", "accuracy")
    return {name: float(results[name]) for name in names}


def write_scores(path: pathlib.Path, paths: list[str], scores: dict) -> None:
    """Prints scores, and writes them beside the model, in `model.json`."""
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
        for name in found:
            if name.startswith("bleu_"):
                print(f"  {name.removeprefix('bleu_')}: BLEU {found[name]:.2f}")
