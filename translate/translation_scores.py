"""BLEU and chrF by sacreBLEU, and BLEU with the paper's tokenization."""

import importlib.metadata
import logging
import re
from collections.abc import Callable

import sacrebleu
from sacrebleu.significance import PairedTest

from command_line.bleu_tokenizer import DEFAULT, make_bleu
from command_line.errors import UserError, require_extra

RESAMPLES = 1_000
# The title of each score, in the order in which they are shown.
TITLES = {
    "bleu": "BLEU",
    "bleu_lowercase": "BLEU, lower-cased",
    "bleu_paper": "BLEU, the paper's",
    "bleu_moses": "BLEU, Moses, lower",
    "chrf": "chrF",
}


def score(
    translations: list[str],
    references: list[str],
    paper_language: str | None = None,
    confidence: bool = False,
    tokenize: str = DEFAULT,
) -> dict:
    """Returns the scores of a corpus, each with its sacreBLEU signature.

    Args:
        translations: Sentences to score.
        references: As many reference translations.
        paper_language: Language of both, such as `"de"`, to add `"bleu_paper"`
            (see `load_splitter`) and `"bleu_moses"`, of Moses's tokens in lower
            case, the form of many results on small corpora.
        confidence: Bool, whether to add `"confidence"` to each score: its 95 %
            interval over bootstrap samples of the sentences.
        tokenize: sacreBLEU's name of BLEU's tokenizer; the paper's has its own.

    Raises:
        UserError: If a tokenizer is missing, or does not support the language.
    """
    metrics = {
        "bleu": make_bleu(tokenize),
        "bleu_lowercase": make_bleu(tokenize, lowercase=True),
        "chrf": sacrebleu.CHRF(),
    }
    texts = {name: [references, translations] for name in metrics}
    notes = {}
    if paper_language:
        for name, lowercase in (("bleu_paper", False), ("bleu_moses", True)):
            split, notes[name] = load_splitter(paper_language, lowercase)
            # As multi-bleu.perl: whitespace tokens, no smoothing.
            metrics[name] = sacrebleu.BLEU(
                lowercase, tokenize="none", smooth_method="none", force=True
            )
            texts[name] = [list(map(split, lines)) for lines in texts["bleu"]]
    results = {}
    for name in TITLES:
        if name in metrics:
            results[name] = score_texts(metrics[name], *texts[name], confidence)
    for name, note in notes.items():
        results[name]["signature"] += note
    return results


def score_texts(
    metric, references: list[str], translations: list[str], confidence: bool
) -> dict:
    """Returns a score by a metric of sacreBLEU, with its interval if wanted."""
    if not confidence:
        value = metric.corpus_score(translations, [references]).score
        return {"score": value, "signature": str(metric.get_signature())}
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    signatures, scores = PairedTest(
        [("", translations)],
        {"metric": metric},
        [references],
        test_type="bs",
        n_samples=RESAMPLES,
    )()
    ((name, signature),) = signatures.items()
    (found,) = scores[name]
    return {
        "score": float(found.score),
        "confidence": {
            "low": float(found.mean - found.ci),
            "high": float(found.mean + found.ci),
            "samples": RESAMPLES,
        },
        "signature": str(signature),
    }


def load_splitter(
    language: str, lowercase: bool = False
) -> tuple[Callable[[str], str], str]:
    """Returns a function that splits a line as the paper did, and its description.

    It is that of tensor2tensor's `get_ende_bleu.sh`: Moses's `tokenizer.perl` (here
    sacremoses, its port) and, of German alone, compounds split at their hyphens.
    With `lowercase`, lines are lower-cased first, and compounds stay whole.
    """
    with require_extra("--paper-bleu", "train"):
        import sacremoses
        from sacremoses.corpus import NonbreakingPrefixes
    known = sorted(set(NonbreakingPrefixes().available_langs.values()))
    if language not in known:
        raise UserError(
            f"--paper-bleu must be one of {', '.join(known)}. Received: {language}"
        )
    tokenizer = sacremoses.MosesTokenizer(language)

    german = language == "de" and not lowercase

    def split(line: str) -> str:
        line = line.lower() if lowercase else line
        line = tokenizer.tokenize(line, return_str=True)
        return split_compounds(line) if german else line

    version = importlib.metadata.version("sacremoses")
    note = "|split:atat" if german else ""
    return split, f"|moses:{language}{note}|sacremoses:{version}"


def split_compounds(line: str) -> str:
    """Puts a space around hyphens, as for GNMT: `rich ##AT##-##AT## text`.

    As in the script, `s{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g`, a match takes the
    byte on each side of its hyphen, so that `a-b-c` is split once.
    """
    split = re.sub(rb"(\S)-(\S)", rb"\1 ##AT##-##AT## \2", line.encode("utf-8"))
    return split.decode("utf-8")


def describe_scores(results: dict) -> list[str]:
    lines = []
    for name, title in TITLES.items():
        if name not in results:
            continue
        result = results[name]
        lines.append(f"{title:18}{format_result(result)}  {result['signature']}")
    return lines


def format_result(result: dict) -> str:
    text = f"{result['score']:6.2f}"
    if "confidence" in result:
        bounds = result["confidence"]
        text += f" ({bounds['low']:.2f} to {bounds['high']:.2f})"
    return text
