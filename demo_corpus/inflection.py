"""English and Spanish inflection by rule, with the needed exceptions."""

import re

Pair = tuple[str, str]

# The forms of a verb by name: one, or one for each person.
Conjugation = dict[str, str | tuple[str, ...]]

# The persons, as indices of every conjugation; there is no "vosotros".
ME, YOU, HE, WE, THEY = range(5)


def add_english_s(word: str, after_o: str = "s") -> str:
    """Add the s of the plural or, with "es" after o, of the third person."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return word + (after_o if word.endswith("o") else "s")


def spanish_plural(word: str) -> str:
    """Make the plural of a Spanish noun or adjective."""
    if re.search(r"[aeiouáéó]$", word):
        return f"{word}s"
    if word.endswith("z"):
        return f"{word[:-1]}ces"
    return f"{remove_final_accent(word)}es"


def remove_final_accent(word: str) -> str:
    """Drop the accent of a last syllable, which a suffix makes needless."""
    for accented, plain in zip("áéíóú", "aeiou", strict=True):
        word = re.sub(f"{accented}(?=[ns]$)", plain, word)
    return word


def agreeing_forms(masculine: str) -> tuple[str, ...]:
    """Make masculine, feminine and both plurals of an adjective or job."""
    feminine = masculine
    if masculine.endswith("o"):
        feminine = f"{masculine[:-1]}a"
    elif re.search(r"(or|és|án|ol)$", masculine):
        feminine = f"{remove_final_accent(masculine)}a"
    return (masculine, feminine, spanish_plural(masculine), spanish_plural(feminine))


def english_verb(row: str, auxiliary: bool = False) -> Conjugation:
    """Conjugate an English verb.

    Args:
        row: The base and, unless regular, past, participle and gerund; an
            underscore joins a particle, as in "look_for".
        auxiliary: Bool, whether it is negated without "do".

    Returns:
        `Conjugation`, with a tuple for the forms that have persons: "present",
        "past", their negations "not" and "not_past", "base", "participle",
        "gerund", and "do" for questions.
    """
    first, *irregular = row.split()
    base, _, rest = first.partition("_")
    regular = re.sub(r"([^aeiou])y$", r"\1i", base)
    past = f"{regular}d" if base.endswith("e") else f"{regular}ed"
    gerund = f"{re.sub(r'(?<=[^e])e$', '', base)}ing"
    past = irregular[0] if irregular else past
    participle = irregular[1] if len(irregular) > 1 else past
    gerund = irregular[2] if len(irregular) > 2 else gerund
    third = "has" if base == "have" else add_english_s(base, after_o="es")
    forms = {
        "present": _third(base, third),
        "past": _third(past, past),
        "base": base,
        "participle": participle,
        "gerund": gerund,
        "do": _third("do", "does"),
        "not": _third(f"do not {base}", f"does not {base}"),
        "not_past": f"did not {base}",
    }
    if base == "be":
        forms["present"] = ("am", "are", "is", "are", "are")
        forms["past"] = ("was", "were", "was", "were", "were")
    if auxiliary:
        forms["not"] = tuple(f"{form} not" for form in forms["present"])
    tail = f" {rest.replace('_', ' ')}" if rest else ""
    return {
        name: form + tail
        if isinstance(form, str)
        else tuple(one + tail if name != "do" else one for one in form)
        for name, form in forms.items()
    }


def _third(form: str, third: str) -> tuple[str, ...]:
    """An English form by person."""
    return (form, form, third, form, form)


def spanish_verb(infinitive: str, change: str = "", irregular: str = "") -> Conjugation:
    """Conjugate a Spanish verb.

    Args:
        infinitive: The infinitive.
        change: The vowel that replaces the stem's last one under stress and,
            after a hyphen, before the endings "ió" and "iendo": "ie-i".
        irregular: Irregular forms, such as `yo=doy past=di,diste,...`; a past
            of one part is a stem as in "traje".

    Returns:
        `Conjugation`, with a tuple for the forms that have persons: "present",
        "past", their negations "not" and "not_past", "base", "participle",
        "gerund", and the commands "imperative" and "forbid".
    """
    given = dict(part.split("=") for part in irregular.split())
    forms = {
        name: tuple(form.split(",")) if "," in form else form
        for name, form in given.items()
    }
    stem, ending = infinitive[:-2], infinitive[-2:]
    stressed, _, weak = change.partition("-")
    strong_stem, weak_stem = _change(stem, stressed), _change(stem, weak)
    yo = forms.pop("yo", f"{strong_stem}o")
    past = forms.get("past")
    if isinstance(past, str):
        they = "eron" if past.endswith("j") else "ieron"
        endings = ("e", "iste", "o", "imos", they)
        forms["past"] = tuple(past + end for end in endings)
    present = (yo, *_regular_present(stem, strong_stem, ending))
    regular = {
        "base": infinitive,
        "present": present,
        "past": _regular_past(stem, weak_stem, ending),
        **_non_finite(stem, weak_stem, ending),
    }
    forms = regular | forms
    subjunctive = f"{yo[:-1]}as"
    if ending == "ar":
        subjunctive = f"{_spell_before_e(yo[:-1])}es"
    return forms | {
        "imperative": forms["present"][HE],
        "forbid": subjunctive,
        "not": tuple(f"no {form}" for form in forms["present"]),
        "not_past": tuple(f"no {form}" for form in forms["past"]),
    }


def _change(stem: str, vowels: str) -> str:
    """Change the last vowel that "ie", "i", "ue" or "u" can stand for."""
    if not vowels:
        return stem
    old = "[ou]" if vowels[0] == "u" else "e"
    return re.sub(f"{old}(?=[^aeiou]*$)", vowels, stem)


def _spell_before_e(stem: str) -> str:
    """Keep the sound of the last consonant of a stem before an e."""
    for last, spelled in (("c", "qu"), ("g", "gu"), ("z", "c")):
        if stem.endswith(last):
            return stem[:-1] + spelled
    return stem


def _regular_present(stem: str, strong: str, ending: str) -> tuple[str, ...]:
    """The present after "yo"."""
    if ending == "ar":
        return f"{strong}as", f"{strong}a", f"{stem}amos", f"{strong}an"
    we = f"{stem}{ending[0]}mos"
    we = we if ending == "er" else f"{stem}imos"
    return f"{strong}es", f"{strong}e", we, f"{strong}en"


def _regular_past(stem: str, weak: str, ending: str) -> tuple[str, ...]:
    if ending == "ar":
        yo = f"{_spell_before_e(stem)}é"
        return yo, *(stem + end for end in ("aste", "ó", "amos", "aron"))
    if stem.endswith(("a", "e", "o")):
        return tuple(stem + end for end in ("í", "íste", "yó", "ímos", "yeron"))
    return f"{stem}í", f"{stem}iste", f"{weak}ió", f"{stem}imos", f"{weak}ieron"


def _non_finite(stem: str, weak: str, ending: str) -> dict[str, str]:
    if ending == "ar":
        return {"participle": f"{stem}ado", "gerund": f"{stem}ando"}
    if stem.endswith(("a", "e", "o")):
        return {"participle": f"{stem}ído", "gerund": f"{stem}yendo"}
    return {"participle": f"{stem}ido", "gerund": f"{weak}iendo"}
