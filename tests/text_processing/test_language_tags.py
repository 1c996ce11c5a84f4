import pytest

from command_line.errors import UserError
from text_processing.language_tags import MAX_LISTED, LanguageTags


def test_of_many_languages_those_with_similar_codes_are_listed():
    codes = ["pt", *(f"x{number}" for number in range(MAX_LISTED))]
    tags = LanguageTags({}, {code: f"<2{code}>" for code in codes})
    message = f"^the target language must be one of the model: pt and {MAX_LISTED} oth"

    with pytest.raises(UserError, match=f"{message}ers. Received: ptt$"):
        tags.find("", "ptt")
    with pytest.raises(UserError, match="Received: no --target-language$"):
        tags.find("", "")


def test_all_of_few_languages_are_listed():
    tags = LanguageTags({"en": "__en__"}, {"pt": "__pt__", "de": "__de__"})

    with pytest.raises(UserError, match="target .* one of the model: de, pt. Rec"):
        tags.find("en", "fr")
    with pytest.raises(UserError, match="source .* one of the model: en. Received: xx"):
        tags.narrowed("xx", "")
