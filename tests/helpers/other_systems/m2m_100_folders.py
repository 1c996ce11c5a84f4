"""Small random models of M2M-100's class, as that library writes them."""

import json

from tests.helpers.example_sentences import SENTENCES
from tests.helpers.other_systems.converted_runs import (
    MAX_LENGTH,
    pieces_of,
    set_random_weights,
    train_spm,
)

TEXTS = [*SENTENCES, "Zwei Hunde schlafen im Gras.", "Один кот спит."]
SPM = "sentencepiece.bpe.model"
ADDED = "Giraffe"  # A word, which its user added.


def write_m2m_tokenizer(folder):
    """Writes a dictionary and a SentencePiece model, whose pieces it reorders."""
    import transformers

    proto = train_spm(TEXTS, 150, model_type="bpe")
    (folder / SPM).write_bytes(proto)
    # Some pieces of the model are not in the dictionary, and the reverse.
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(proto)[:9:-1], *"789"]
    table = {piece: id_ for id_, piece in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(table))
    tokenizer = transformers.M2M100Tokenizer(folder / "vocab.json", folder / SPM)
    tokenizer.save_pretrained(folder)
    return len(table) + len(tokenizer.lang_code_to_token) + 8


def write_nllb_tokenizer(folder):
    """Writes a tokenizer with tokens added before and between those of languages."""
    import transformers

    (folder / SPM).write_bytes(train_spm(TEXTS, 150, model_type="bpe"))
    tokenizer = transformers.NllbTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["eng_Latn", "fra_Latn"], special_tokens=True)
    tokenizer.add_tokens([ADDED])
    tokenizer.add_tokens(["deu_Latn"], special_tokens=True)
    tokenizer.save_pretrained(folder)
    return len(tokenizer) + 2


KINDS = {"m2m-100": write_m2m_tokenizer, "nllb-200": write_nllb_tokenizer}


def write_m2m_folder(folder, kind, **numbers):
    """Writes the folder of a random model, and returns the model."""
    import torch
    import transformers

    folder.mkdir(parents=True)
    size = KINDS[kind](folder)
    sizes = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    sizes |= {"encoder_layers": 3, "decoder_layers": 2}
    config = transformers.M2M100Config(
        vocab_size=size,
        d_model=64,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=MAX_LENGTH,
        **{**sizes, **numbers},
    )
    model = transformers.M2M100ForConditionalGeneration(config).eval()
    model.generation_config.update(num_beams=5, max_length=MAX_LENGTH)
    set_random_weights(model)
    with torch.no_grad():
        table = model.get_decoder().embed_tokens.weight
        for weight in model.parameters():
            if weight.dim() == 2 and weight is not table:
                weight *= 4  # Else each token repeats the one before.
        table[1] = 0
        # Some translations end.
        model.get_decoder().layer_norm.bias += 2.5 * table[2]
    model.save_pretrained(folder)
    return model
