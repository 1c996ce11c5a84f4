"""English and Spanish inflection by rule, with the needed exceptions."""

import re

# The forms of a word in a language by name: a tuple of one; of four, which are
# masculine, feminine and both plurals; or of five, one for each person. The form of
# a slot without one is "".
Forms = dict[str, tuple[str, ...]]

# The persons, as indices; there is no "vosotros".
ME, YOU, HE, WE, THEY = range(5)

DO = ("do", "do", "does", "do", "do")
IRREGULAR = {
    "be": {
        "present": ("am", "are", "is", "are", "are"),
        "past": ("was", "were", "was", "were", "were"),
    },
    "have": {"present": ("have", "have", "has", "have", "have")},
}
ENDINGS = {
    "ar": {
        "present": "o as a amos an",
        "past": "é aste ó amos aron",
        "participle": "ado",
        "gerund": "ando",
    },
    "er": {
        "present": "o es e emos en",
        "past": "í iste ió imos ieron",
        "participle": "ido",
        "gerund": "iendo",
    },
}
ENDINGS["ir"] = ENDINGS["er"] | {"present": "o es e imos en"}
UNACCENTED = str.maketrans("áéíóú", "aeiou")


def add_english_s(word: str) -> str:
    """Add the s of the plural and of the third person."""
    if re.search(r"(s|x|z|ch|sh|o)$", word):
        return f"{word}es"
    return re.sub(r"([^aeiou])y$", r"\1ie", word) + "s"


def spanish_plural(word: str) -> str:
    """Make the plural of a Spanish noun or adjective."""
    if re.search(r"[aeiouáéó]$", word):
        return f"{word}s"
    return re.sub("z$", "c", remove_final_accent(word)) + "es"


def remove_final_accent(word: str) -> str:
    """Drop the accent of a last syllable, which a suffix makes needless."""
    return re.sub(
        "[áéíóú](?=[ns]$)", lambda match: match[0].translate(UNACCENTED), word
    )


def agreeing_forms(masculine: str) -> tuple[str, ...]:
    """Make masculine, feminine and both plurals of an adjective or job."""
    feminine = re.sub("o$", "a", masculine)
    if re.search(r"(or|és|án|ol)$", masculine):
        feminine = f"{remove_final_accent(masculine)}a"
    return (masculine, feminine, spanish_plural(masculine), spanish_plural(feminine))


def english_verb(row: str, auxiliary: bool) -> Forms:
    """Conjugate an English verb; an auxiliary is negated without "do"."""
    first, *given = row.split()
    base, *particle = first.split("_")
    past, participle, gerund = [*given, "", "", ""][:3]
    regular = re.sub(r"([^aeiou])y$", r"\1i", base).removesuffix("e") + "ed"
    past = past or regular
    forms = {
        "present": (base, base, add_english_s(base), base, base),
        "past": (past,),
        "base": (base,),
        "participle": (participle or past,),
        "gerund": (gerund or re.sub("(?<=[^e])e$", "", base) + "ing",),
        "not": tuple(f"{do} not {base}" for do in DO),
        "not_past": (f"did not {base}",),
        **IRREGULAR.get(base, {}),
    }
    if auxiliary:
        forms["not"] = tuple(f"{form} not" for form in forms["present"])
    forms = {
        name: tuple(" ".join([form, *particle]) for form in of_persons)
        for name, of_persons in forms.items()
    }
    return forms | {"": forms["present"], "do": DO}


def spanish_verb(infinitive: str, change: str, irregular: dict[str, str]) -> Forms:
    """Conjugate a Spanish verb.

    The vowels `change` replace the last of the stem under stress. Irregular are forms
    such as `{"yo": "doy", "past": "di diste dio dimos dieron"}`; a past of one part
    is a stem as in "traje".
    """
    stem, ending = infinitive[:-2], infinitive[-2:]
    stressed = re.sub("[eou](?=[^aeiou]*$)", change, stem) if change else stem
    forms = {
        name: tuple(stem + end for end in endings.split())
        for name, endings in ENDINGS[ending].items()
    }
    forms["present"] = tuple(
        (stem if person == WE else stressed) + end
        for person, end in enumerate(ENDINGS[ending]["present"].split())
    )
    if ending == "ar":
        forms["past"] = (f"{spell_before_e(stem)}é", *forms["past"][1:])
    forms["base"] = (infinitive,)
    forms |= {name: tuple(given.split()) for name, given in irregular.items()}
    if len(forms["past"]) == 1:
        they = "eron" if irregular["past"].endswith("j") else "ieron"
        endings = ("e", "iste", "o", "imos", they)
        forms["past"] = tuple(irregular["past"] + end for end in endings)
    (yo,) = forms.pop("yo", forms["present"][:1])
    forms["present"] = (yo, *forms["present"][1:])
    subjunctive = f"{spell_before_e(yo[:-1])}es" if ending == "ar" else f"{yo[:-1]}as"
    return forms | {
        "": forms["present"],
        "imperative": (forms["present"][HE],),
        "forbid": (subjunctive,),
        "not": tuple(f"no {form}" for form in forms["present"]),
        "not_past": tuple(f"no {form}" for form in forms["past"]),
    }


def spell_before_e(stem: str) -> str:
    """Keep the sound of the last consonant of a stem before an e."""
    return stem[:-1] + {"c": "qu", "g": "gu", "z": "c"}.get(stem[-1], stem[-1])
