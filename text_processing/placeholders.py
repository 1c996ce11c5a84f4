"""Finds text that translation leaves unchanged, such as URLs, `{0}`, 5 kg and ☺.

`PLACEHOLDERS` replace such text. A vocabulary that was learned with
placeholders has each of them as one subword.
"""

import re
import unicodedata

# Unicode normalization does not change these, so the tokenizer finds them.
PLACEHOLDERS = tuple(f"⦅{number}⦆" for number in range(10))
PLACEHOLDER = re.compile(r"⦅\d⦆")
# The line before or after code that stays unchanged begins with this, unlike the line
# below a title in reStructuredText and AsciiDoc, of more tildes.
FENCE = r"[ \t]*(?:```|~~~(?:$|[^~]))"

UNITS = (
    "km/h|m/s|[kMG]?bit/s|[kKMGT]i?B/s|"
    "[kMGT]?Hz|[kMG]?Wh|[mkMG]?W|[mk]?V|mA|[hkM]?Pa|bar|dB|k?cal|k?J|Nm|"
    "[nµμmcdk]?m[²³]?|[µμmk]?g|[mcdh]?[lL]|[nµμm]?s|min|h|"
    "[kKMGT]i?B|px|pt|dpi|fps|rpm|mph|lb|oz|ft"
)
NUMBER = r"\d+(?:[.,\u00a0\u202f]\d+)*"
# A keycap, a flag, or what may be a symbol, with what modifies it or is joined to it.
SYMBOL = (
    r"(?P<symbol>(?:[0-9\#*]\ufe0f?\u20e3|[©®]\ufe0f|[\U0001f1e6-\U0001f1ff]{2}"
    r"|[^\w\s\x00-\xff])"
    r"(?:[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
    r"|\u200d[^\w\s\x00-\xff⦅])*)"
)
# The characters of a URL, with variables in braces, and those that may end it.
URL = r"(?:[^\s<>\"⦅⦆{}]|\{[^\s{}]*+\})*"
URL_END = r"(?:[^\s<>\"⦅⦆.,;:!?'()\[\]{}*_…»“”’]|\{[^\s{}]*+\})/?"
BRACES = r"(?:[^{}]|\{[^{}]*+\})*+"  # What is between braces that may have some.
# Variables of templates and of formats of messages; the guide says whose.
VARIABLES = (
    PLACEHOLDER.pattern,
    rf"\{{\{{\{{?{BRACES}\}}?\}}\}}",  # {{name}}, {{{name}}}, {{#if name}}
    rf"\{{%{BRACES}\}}(?<=%\}})|\{{\#{BRACES}\}}(?<=\#\}})",  # {% if x %}, {# x #}
    rf"[$\#%@]\{{{BRACES}\}}",  # ${name}, #{name}, %{name}
    r"\{[ ]?[^\s{}]*+[ ]?\}",  # {name}, {0:.2f}, { $name }
    r"\{:?[ ]?(?:[\#.][\w-]|[\w-]+=)[^{}]*+\}",  # {#id .class}, {: .class}, {w=5 h=6}
    r"<%(?:[^<%]|%(?!>))*+%>|\*\|[^\s|]++\|\*|%%\w++%%",  # <%= x %>, *|NAME|*, %%name%%
    # {0, number, #.##}, {0:d MMM}
    r"\{[ ]?(?:\d+|\w+(?=[ ]?,[ ]?(?:number|date|time)\b))[ ]?[,:][^{}]*+\}",
    r"%(?:\([^()\s]++\)|<\w++>|\d+\$)?\#@\w++@",  # %#@name@
    # %s, %1$@, %-5.2f, %(name)s, %d%s, %dpx
    r"(?<![\w%])(?:%(?:\([^()\s]++\)|<\w++>|\d++\$)?"
    r"[-\#0+']*+(?:\d++|\*)?(?:\.(?:\d++|\*)?)?(?:hh?|ll?|[qjztL])?"
    rf"[diouxXeEfFgGaAcCsSpnr@])+(?=(?:x|{UNITS})?(?!\w))",
    r"(?<![\w%])%(?:[a-zA-Z_]\w*+%(?!\w)|L?\d{1,2}(?!\w|[.,]\d))|%%",  # %name%, %1, %%
    # $name, $name.part, $t(name)
    r"(?<![\w$])\$(?:t\([^()]*+\)|[a-zA-Z_]\w*+(?:\$|(?:(?:\.|->)[a-zA-Z_]\w*+)*+))",
    r"</?\d++/?>",  # <0>, </0>
    r"(?<![^\s(\[\"'“‘«„>]):[a-zA-Z_]\w*+:?",  # :name, :name:
    r"(?<!\w)@(?:\.\w++)?:(?:\([^()\s]*+\)|[\w-]++(?:\.[\w-]++)*+)",  # @:ref
)
VARIABLE = re.compile("|".join(VARIABLES), re.VERBOSE)
UNTRANSLATABLE = re.compile(
    rf"""(?xi:
    \b(?:https?|ftp)://{URL}{URL_END}
    | \bwww\.{URL}{URL_END}
    | (?<![\w.+-])[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+
    )|(?x:
    {VARIABLE.pattern}
    | (?<![\w.,])(?:[+−±-]|(?<!\d[\u00a0\u202f])){NUMBER}
      (?:%%|[%‰€£$¥]|°[CF]?
        |[\ \u00a0\u202f](?:%%|[%‰€£$¥]|°[CF]?)(?![\w(@{{<\#*+]|[-.]\d)
        |[\ \u00a0\u202f]?(?:{UNITS})(?![\w²³/]|['’]\w))
    | (?<![\w.,])[€£$¥]\ ?{NUMBER}(?!\w)
    )|{SYMBOL}"""
)
# An argument of ICU's messages that has messages in it.
MESSAGE = re.compile(r"\{\s*+\w++\s*+,\s*+(?:plural|selectordinal|select|choice)\s*+,")


def find_untranslatable_spans(text: str) -> list[tuple[int, int]]:
    """Returns the spans of a text that stay unchanged.

    They are URLs, e-mail addresses, variables of templates and of messages, numbers
    with a unit or currency, and the spans of `find_symbol_spans`.

    Example:
        >>> text = "Mail {name} at a@b.org: 5 kg, 30 %."
        >>> [text[start:end] for start, end in find_untranslatable_spans(text)]
        ['{name}', 'a@b.org', '5 kg', '30 %']
    """
    return [
        found.span()
        for found in UNTRANSLATABLE.finditer(text)
        if not found["symbol"] or is_symbol(found["symbol"])
    ]


def find_symbol_spans(text: str) -> list[tuple[int, int]]:
    """Returns the spans of symbols that a vocabulary may lack, such as emoji."""
    if text.isascii():
        return []
    spans = (found.span("symbol") for found in UNTRANSLATABLE.finditer(text))
    return [span for span in spans if span[0] >= 0 and is_symbol(text[slice(*span)])]


def is_symbol(text: str) -> bool:
    """Returns whether a match of `SYMBOL` is an emoji or another symbol.

    Currencies and the symbols up to U+00FF are left to the model, and so are
    those that the tokenizer spells in letters, such as ™ and №.
    """
    if "\u20e3" in text:  # A keycap.
        return True
    if unicodedata.category(text[0]) not in ("So", "Sm", "Sk"):
        return False
    # U+FFFD replaces invalid bytes.
    return len(text) > 1 or unicodedata.normalize("NFKC", text) == text != "\ufffd"


def replace_in_pair(source: str, target: str) -> tuple[str, str]:
    """Puts the same placeholders into a sentence and its translation.

    They replace text that occurs equally often in both, numbered in the order
    of the source. A pair that has placeholders, or more than ten such parts,
    stays as it is.

    Example:
        >>> replace_in_pair("See www.a.org now.", "Mira ahora www.a.org.")
        ('See ⦅0⦆ now.', 'Mira ahora ⦅0⦆.')
    """
    if PLACEHOLDER.search(source + target):
        return source, target
    left, right = (
        [text[start:end] for start, end in find_untranslatable_spans(text)]
        for text in (source, target)
    )
    shared = [part for part in left if left.count(part) == right.count(part)]
    if len(shared) > len(PLACEHOLDERS):
        return source, target
    names = [(part, PLACEHOLDERS[n]) for n, part in enumerate(shared)]
    return replace_spans(source, names), replace_spans(target, names)


def replace_spans(text: str, names: list[tuple[str, str]]) -> str:
    """Replaces spans by names; equal spans in the order of their names."""
    names, written, done = list(names), [], 0
    for start, end in find_untranslatable_spans(text):
        part = text[start:end]
        name = next((pair for pair in names if pair[0] == part), None)
        if name:
            names.remove(name)
            written += [text[done:start], name[1]]
            done = end
    return "".join([*written, text[done:]])
