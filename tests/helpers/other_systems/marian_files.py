"""Writes small models in Marian's format; computes their outputs by its formulas."""

import struct

import numpy as np
import yaml

WIDTH, INNER, HEADS = 8, 12, 2
LAYERS, DECODER_LAYERS = 2, 1
CONFIGURATION = {
    **{"type": "transformer", "dim-emb": WIDTH, "tied-embeddings-all": True},
    **{"enc-depth": LAYERS, "dec-depth": DECODER_LAYERS, "dec-cell": "ssru"},
    **{"transformer-heads": HEADS, "transformer-dim-ffn": INNER},
    **{"transformer-preprocess": "", "transformer-postprocess": "dan"},
    **{"transformer-postprocess-emb": "d", "transformer-ffn-activation": "relu"},
    "transformer-decoder-autoreg": "rnn",
}
OUR_ORDER = [0, 4, 1, 5, 2, 6, 3, 7]  # Sines and cosines alternate.


def make_tensors(sizes, recurrent=True, seed=3, output=""):
    """Returns random tensors by Marian's names.

    `sizes` are rows of the one matrix, or of those of sources and targets; `output`,
    `"W"` or `"Wt"`, is the matrix of the logits if it is not that of the embeddings.
    """
    random = np.random.default_rng(seed)
    tensors = {}

    def add(name, *shape):
        values = random.normal(size=shape) * shape[0] ** -0.5
        tensors[name] = values.astype("float32")

    def add_norm(name):
        add(f"{name}_ln_scale", 1, WIDTH)
        add(f"{name}_ln_bias", 1, WIDTH)

    def add_attention(name):
        for letter in "qkvo":
            add(f"{name}_W{letter}", WIDTH, WIDTH)
            add(f"{name}_b{letter}", 1, WIDTH)
        add_norm(f"{name}_Wo")

    names = ("Wemb",) if len(sizes) == 1 else ("encoder_Wemb", "decoder_Wemb")
    for name, size in zip(names, sizes, strict=True):
        add(name, size, WIDTH)
    add("decoder_ff_logit_out_b", 1, sizes[-1])
    if output:
        shape = (WIDTH, sizes[-1])
        shape = shape if output == "W" else shape[::-1]
        add(f"decoder_ff_logit_out_{output}", *shape)
    for stack, layers in (("encoder", LAYERS), ("decoder", DECODER_LAYERS)):
        for layer in range(1, layers + 1):
            prefix = f"{stack}_l{layer}"
            if stack == "decoder":
                add_attention(f"{prefix}_context")
            if stack == "decoder" and recurrent:
                add(f"{prefix}_rnn_W", WIDTH, WIDTH)
                add(f"{prefix}_rnn_Wf", WIDTH, WIDTH)
                add(f"{prefix}_rnn_bf", 1, WIDTH)
                add_norm(f"{prefix}_rnn_ffn")
            else:
                add_attention(f"{prefix}_self")
            add(f"{prefix}_ffn_W1", WIDTH, INNER)
            add(f"{prefix}_ffn_b1", 1, INNER)
            add(f"{prefix}_ffn_W2", INNER, WIDTH)
            add(f"{prefix}_ffn_b2", 1, WIDTH)
            add_norm(f"{prefix}_ffn_ffn")
    return tensors


def quantize(tensors):
    """Returns the matrices in int8, and the factor of each: 127 / max."""
    codes, factors = {}, {}
    for name, array in tensors.items():
        if len(array) == 1:  # Biases and norms stay as they are.
            codes[name] = array
            continue
        factors[name] = np.float32(127 / np.abs(array).max())
        codes[name] = np.round(array * factors[name]).astype(np.int8)
    return codes, factors


def write_model(path, tensors, factors=None, **changes):
    """Writes tensors and changes of the configuration, as `.npz` or `.bin`."""
    factors = factors or {}
    text = yaml.safe_dump({**CONFIGURATION, **changes}).encode() + b"\0"
    content = np.frombuffer(text, np.int8)
    tensors = {**tensors, "special:model.yml": content}
    if path.suffix == ".npz":
        np.savez(path, **tensors)
        return
    blocks, headers, names, shapes = [], [], [], []
    for name, array in tensors.items():
        kind = 0x101 if array.dtype == np.int8 else 0x404
        block = array.tobytes()
        if name in factors:  # They follow the values, which are transposed.
            stored = array if name.endswith("Wemb") else array.T
            kind = 0x4101
            block = stored.tobytes() + factors[name].tobytes()
        block += bytes(-len(block) % 256)
        label = name.encode() + b"\0"
        headers.append(struct.pack("<4Q", len(label), kind, array.ndim, len(block)))
        names.append(label)
        shapes.append(struct.pack(f"<{array.ndim}i", *array.shape))
        blocks.append(block)
    start, gap = struct.pack("<2Q", 1, len(tensors)), struct.pack("<Q", 5) + bytes(5)
    path.write_bytes(b"".join([start, *headers, *names, *shapes, gap, *blocks]))


def forward(tensors, source_ids, target_ids, activation="relu"):
    """Returns the logits of one sentence: ids with the end, and those said so far."""
    sources, targets = (
        tensors["Wemb" if "Wemb" in tensors else f"{side}_Wemb"]
        for side in ("encoder", "decoder")
    )

    def act(x):
        return np.maximum(x, 0) if activation == "relu" else x / (1 + np.exp(-x))

    t = {name: array.astype("float64") for name, array in tensors.items()}

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
        return x * t[f"{name}_ln_scale"] + t[f"{name}_ln_bias"]

    def attend(name, x, memory, causal=False):
        q, k, v = (
            (y @ t[f"{name}_W{letter}"] + t[f"{name}_b{letter}"])
            for letter, y in zip("qkv", (x, memory, memory), strict=True)
        )
        heads = []
        for place in np.split(np.arange(WIDTH), HEADS):
            scores = q[:, place] @ k[:, place].T / np.sqrt(len(place))
            if causal:
                scores += np.triu(np.full(scores.shape, -1e9), 1)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            heads.append(weights @ v[:, place])
        output = np.concatenate(heads, -1) @ t[f"{name}_Wo"] + t[f"{name}_bo"]
        return norm(x + output, f"{name}_Wo")

    def feed_forward(name, x):
        inner = act(x @ t[f"{name}_W1"] + t[f"{name}_b1"])
        output = inner @ t[f"{name}_W2"] + t[f"{name}_b2"]
        return norm(x + output, f"{name}_ffn")

    def recur(name, x):
        state, states = np.zeros(WIDTH), []
        for row in x:
            gate = row @ t[f"{name}_Wf"] + t[f"{name}_bf"][0]
            kept = 1 / (1 + np.exp(-gate))
            state = kept * state + (1 - kept) * (row @ t[f"{name}_W"])
            states.append(np.maximum(state, 0))
        return norm(x + np.array(states), f"{name}_ffn")

    x = place_words(sources[source_ids].astype("float64"))
    for layer in range(1, LAYERS + 1):
        x = attend(f"encoder_l{layer}_self", x, x)
        x = feed_forward(f"encoder_l{layer}_ffn", x)
    memory = x
    begun = np.concatenate([np.zeros((1, WIDTH)), targets[target_ids]])
    x = place_words(begun)
    for layer in range(1, DECODER_LAYERS + 1):
        prefix = f"decoder_l{layer}"
        if f"{prefix}_rnn_W" in t:
            x = recur(f"{prefix}_rnn", x)
        else:
            x = attend(f"{prefix}_self", x, x, causal=True)
        x = attend(f"{prefix}_context", x, memory)
        x = feed_forward(f"{prefix}_ffn", x)
    output = targets.T
    if "decoder_ff_logit_out_W" in t:
        output = t["decoder_ff_logit_out_W"]
    elif "decoder_ff_logit_out_Wt" in t:
        output = t["decoder_ff_logit_out_Wt"].T
    return x @ output + t["decoder_ff_logit_out_b"]


def translate_greedily(tensors, source_ids, end, unknown, limit, **options):
    """Returns at most `limit` ids, without the end and never the unknown one."""
    said = []
    while len(said) < limit:
        logits = forward(tensors, source_ids, said, **options)[-1]
        logits[unknown] = -np.inf
        said.append(int(logits.argmax()))
        if said[-1] == end:
            return said[:-1]
    return said


def write_download(
    folder, protos, tables, recurrent=False, seed=3, unknown=9.0, **changes
):
    """Writes what an OPUS-MT download holds, and returns the tensors of the model.

    `protos` are SentencePiece models of both sides, `tables` dicts from pieces to
    ids, one for both sides or one each. `unknown` is added to the logit of the
    unknown piece, which would be the most probable, were it ever generated.
    """
    autoreg = "rnn" if recurrent else "self-attention"
    tensors = make_tensors([len(table) for table in tables], recurrent, seed)
    for tensor_name, tensor in tensors.items():  # Sources matter more.
        if len(tensor) > 1:
            tensor *= 3 if tensor_name.endswith("Wemb") else 2
        elif tensor_name.endswith(("_ln_bias", "_logit_out_b")):
            tensor *= 0.1
    tensors["decoder_ff_logit_out_b"][0, tables[-1]["<unk>"]] += unknown
    name = "opus.spm32k-spm32k.transformer-align.model1.npz.best-perplexity.npz"
    changes = {"transformer-decoder-autoreg": autoreg, **changes}
    write_model(folder / name, tensors, **changes)
    for side, proto in zip(("source", "target"), protos, strict=True):
        (folder / f"{side}.spm").write_bytes(proto)
    sides = [""] if len(tables) == 1 else [".src", ".trg"]
    for side, table in zip(sides, tables, strict=True):
        text = yaml.safe_dump(table, allow_unicode=True, sort_keys=False)
        for word in ("no", "null", "1"):  # Other writers do not quote these.
            text = text.replace(f"'{word}':", f"{word}:")
        path = folder / f"opus.spm32k-spm32k{side}.vocab.yml"
        path.write_text(text, "utf-8")
    search = {"beam-size": 6, "normalize": 1, "word-penalty": 0}
    search |= {"relative-paths": True, "models": [name], "mini-batch": 1}
    (folder / "decoder.yml").write_text(yaml.safe_dump(search))
    (folder / "README.md").write_text("# opus-2020-02-26.zip\n")
    (folder / "LICENSE").write_text("CC-BY 4.0\n")
    (folder / "preprocess.sh").write_text("exit 1\n")
    return tensors


def place_words(embeddings):
    """Scales embeddings, and adds sines and cosines, in two halves."""
    half = WIDTH // 2
    rates = 1e4 ** -(np.arange(half) / (half - 1))
    angles = np.arange(len(embeddings))[:, None] * rates
    signal = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    return np.sqrt(WIDTH) * embeddings + signal


def check_epsilon(normalization, scale, bias, epsilon):
    """Compares with NumPy on states that are so small that the epsilon shows."""
    x = np.random.default_rng(2).normal(0, 1e-3, (5, WIDTH))
    found = normalization(x[:, OUR_ORDER])
    x -= x.mean(axis=1, keepdims=True)
    x /= np.sqrt(np.mean(x**2, axis=1, keepdims=True) + epsilon)
    expected = (x * scale + bias)[:, OUR_ORDER]
    np.testing.assert_allclose(found, expected, atol=1e-4)
