"""Ids of the tokens that are no text."""

PADDING_ID = 0
EOS_ID = 1
UNKNOWN_ID = 2
BOS_ID = 3
