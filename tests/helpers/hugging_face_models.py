"""Random models of Hugging Face's `MarianMTModel`, with their folders."""

import io
import json

import numpy as np
import sentencepiece

from tests.helpers.example_sentences import SENTENCES

LANGUAGE_TOKEN = ">>fra<<"
MAX_LENGTH = 24


def train_spm(lines, size, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 5),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def pieces_of(proto):
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    return [
        processor.id_to_piece(i)
        for i in range(processor.get_piece_size())
        if not processor.is_control(i) and not processor.is_unknown(i)
    ]


def make_table(pieces):
    table = {"</s>": 0, "<unk>": 1}
    for piece in [*pieces, LANGUAGE_TOKEN]:
        table.setdefault(piece, len(table))
    return {**table, "<pad>": len(table)}


def write_folder(folder, shares=True, **numbers):
    """Writes the folder of a random model, as the library saves it, and returns it.

    If it `shares`, both sides have one vocabulary and matrix; `numbers` are of
    `MarianConfig`.
    """
    import torch
    import transformers

    backwards = [sentence[::-1] for sentence in SENTENCES]
    protos = {"source": train_spm(SENTENCES, 90), "target": train_spm(backwards, 80)}
    for name, proto in protos.items():
        (folder / f"{name}.spm").write_bytes(proto)
    sources, targets = map(pieces_of, protos.values())
    if shares:
        # Some pieces of the source are not in the table.
        tables = {"vocab.json": make_table(sources[:-3] + targets)}
    else:
        # That library wants <pad> to be the same id in both.
        more = len(sources) - 3 - len(targets)
        filling = [f"<{i}>" for i in range(abs(more))]
        tables = {
            "vocab.json": make_table(sources[:-3] + filling[: max(0, -more)]),
            "target_vocab.json": make_table(targets + filling[: max(0, more)]),
        }
    for name, table in tables.items():
        (folder / name).write_text(json.dumps(table))
    tokenizer = json.dumps({"separate_vocabs": not shares})
    (folder / "tokenizer_config.json").write_text(tokenizer)
    *_, last = tables.values()
    # The two sides have the same end; only one of them begins.
    size = len(tables["vocab.json"])
    config = transformers.MarianConfig(
        vocab_size=size,
        decoder_vocab_size=len(last),
        share_encoder_decoder_embeddings=shares,
        pad_token_id=len(last) - 1,
        decoder_start_token_id=len(last) - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        bad_words_ids=[[len(last) - 1]],
        max_position_embeddings=MAX_LENGTH,
        max_length=MAX_LENGTH,
        num_beams=4,
        **numbers,
    )
    model = transformers.MarianMTModel(config).eval()
    random = np.random.default_rng(7)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" in name:
                continue
            values = random.normal(size=tuple(weight.shape))
            if weight.dim() == 1:
                weight += torch.tensor(0.3 * values, dtype=weight.dtype)
            else:
                values *= weight.shape[-1] ** -0.5
                weight.copy_(torch.tensor(values, dtype=weight.dtype))
        model.get_decoder().embed_tokens.weight[len(last) - 1] = 0
        bias = 0.2 * random.normal(size=(1, len(last)))
        bias[0, 0] += 2.0  # Some translations end.
        model.final_logits_bias.copy_(torch.tensor(bias))
    model.save_pretrained(folder)
    return model
