"""Subwords with bytes of SentencePiece's byte fallback, and the text they should be."""

import itertools

from hypothesis import strategies as st

CHARACTERS = "Aé猫😆\0\ufffd\uffff\ud7ff\U0010ffff"
HALVES = [c.encode()[:-1] for c in CHARACTERS] + [c.encode()[1:] for c in CHARACTERS]
WRONG = [b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xff"]
# Bytes, and texts of other subwords.
PARTS = st.lists(
    st.sampled_from([*map(str.encode, CHARACTERS), *HALVES, *WRONG])
    | st.binary(max_size=4)
    | st.sampled_from(["cat", "the house", "un año"])
)


def ids_of(library, parts):
    """Returns the ids of parts in a model of the library `sentencepiece`."""
    return [
        i
        for part in parts
        for i in (
            library.encode(part)
            if isinstance(part, str)
            else [library.piece_to_id(f"<0x{byte:02X}>") for byte in part]
        )
    ]


def text_of(library, parts):
    """Returns their text; Python decodes what is between the other subwords."""
    whole = []
    for is_text, run in itertools.groupby(parts, lambda part: isinstance(part, str)):
        if is_text:
            whole += run
        else:
            whole.append(b"".join(run).decode("utf-8", "ignore").encode())
    return library.decode(ids_of(library, whole))
