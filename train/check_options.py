"""Refuses options that exclude each other, or lack another one."""

from command_line.errors import UserError
from command_line.options import flag, values_of
from train import options
from train.loop import multi_worker
from train.options import CorpusOptions, Options


def check_corpus(given: Options) -> None:
    """Refuses a corpus that is given twice or incompletely."""
    corpus, asked = given.corpus, values_of(given)

    def flags(names: tuple[str, ...]) -> list[str]:
        return [flag(name) for name in names if asked[name]]

    trees = flags(options.TREES)
    if corpus.task == options.PARSING:
        others = ("dataset", *options.FILES, "mixture", *options.TFDS_OPTIONS)
        bleu = ("validate_bleu", "validation_beam_size", "bleu_tokenize")
        texts = ("drop_invalid", "placeholders", "alignments", "alignment_weight")
        filters = given.filters.in_use()
        check_parsing(trees, flags((*others, *texts, *filters, *bleu)))
        return
    if trees:
        raise UserError(
            f"{trees[0]} needs --task {options.PARSING}. Received: {trees[0]} alone"
        )
    check_files(corpus, flags(options.FILES))
    check_alignments(given)
    if corpus.drop_invalid and corpus.dataset and not corpus.mixture:
        raise UserError(
            "--drop-invalid must come with text files. "
            f"Received: --drop-invalid and --dataset {corpus.dataset}"
        )
    of_sets = flags(options.TFDS_OPTIONS)
    if of_sets and not corpus.dataset and not corpus.mixture:
        raise UserError(
            f"{', '.join(map(flag, options.TFDS_OPTIONS))} are of --dataset. "
            f"Received: {', '.join(of_sets)} and files"
        )
    if corpus.train_split and corpus.mixture:
        raise UserError(
            'a source of --mixture must name its own "split". '
            f"Received: --train-split {corpus.train_split}"
        )
    if corpus.validation_split and not corpus.dataset:
        raise UserError(
            "--validation-split must come with --dataset. Received: "
            f"--validation-split {corpus.validation_split} and files"
        )


def find_obstacles(given: Options) -> list[str]:
    """Returns what makes a run other than a new translation model.

    That is another task, a model to start from, or several machines.
    """
    obstacles = {
        f"--task {options.PARSING}": given.corpus.task == options.PARSING,
        "--init-from": given.run.init_from is not None,
        "TF_CONFIG": multi_worker.is_multi_worker(),
    }
    return [name for name, there in obstacles.items() if there]


def check_both_directions(given: Options) -> None:
    """Refuses options that exclude `--both-directions`."""
    found = find_obstacles(given)
    if given.run.both_directions and found:
        raise UserError(
            "--both-directions is for translation models that start from "
            f"random weights on one machine. Received: {found[0]}"
        )


def check_parsing(trees: list[str], others: list[str]) -> None:
    """Refuses options that exclude `--task parsing`."""
    wanted = [flag(name) for name in options.TREES]
    if others or trees != wanted:
        raise UserError(
            f"--task {options.PARSING} must come with {' and '.join(wanted)}, "
            "and without other corpora and options of text or BLEU. "
            f"Received: {', '.join(trees + others) or 'none of them'}"
        )


def check_alignments(given: Options) -> None:
    """Refuses `--alignments` where the words of a pair are not the file's."""
    corpus = given.corpus
    excluded = {
        "--dataset": corpus.dataset,
        "--mixture": corpus.mixture,
        "--drop-invalid": corpus.drop_invalid,
        "--placeholders": corpus.placeholders,
    }
    found = [name for name, there in excluded.items() if there]
    if corpus.alignments and found:
        raise UserError(
            "--alignments must come with text files, whose words stay as they "
            f"are. Received: {found[0]}"
        )
    weight = given.training.alignment_weight
    if weight and not corpus.alignments:
        raise UserError(
            "--alignment-weight needs --alignments. "
            f"Received: --alignment-weight {weight} alone"
        )


def check_files(corpus: CorpusOptions, given: list[str]) -> None:
    """Refuses missing text files, and files beside a data set."""
    files = options.FILES[2:] if corpus.mixture else options.FILES
    wanted = [flag(name) for name in files]
    if corpus.dataset is None and given != wanted:
        raise UserError(
            f"the corpus must be --dataset NAME, or all of {', '.join(wanted)}"
            f"{' with --mixture' if corpus.mixture else ''}. "
            f"Received: {', '.join(given) or 'neither'}"
        )
    if corpus.dataset and given:
        raise UserError(
            "the corpus must be --dataset or files, not both. "
            f"Received: --dataset {corpus.dataset} and {', '.join(given)}"
        )
