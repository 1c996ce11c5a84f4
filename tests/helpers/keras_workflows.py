"""Builds, trains, saves and loads a model as a Keras user does, on any backend.

`python -m tests.helpers.keras_workflows` runs every check with `KERAS_BACKEND`.
"""

import dataclasses
import functools
import gc
import itertools
import tempfile
import warnings

import keras
import numpy as np
import pytest
from keras import ops

import keras_transformer as kt

V = 19
# Where nothing else is quick; TensorFlow takes seconds to compile by XLA.
JIT = keras.backend.backend() == "jax"
SMALL = kt.Architecture(
    num_layers=1,
    hidden_dim=32,
    intermediate_dim=48,
    num_heads=4,
    key_dim=8,
    value_dim=8,
    dropout=0.0,
)
RANDOM = np.random.default_rng(2017)
SOURCE = np.where(np.arange(7) < [[7], [3], [5], [6]], RANDOM.integers(4, V, (4, 7)), 0)
LABELS = np.where(np.arange(6) < [[4], [6], [2], [5]], RANDOM.integers(4, V, (4, 6)), 0)
TARGET = np.pad(LABELS, ((0, 0), (1, 0)), constant_values=3)[:, :-1]
ENDS = np.arange(7) == np.count_nonzero(LABELS, axis=1)[:, None]
LARGE = np.where(SOURCE.max() == SOURCE, V, SOURCE)
LOGITS = np.zeros((*TARGET.shape, V), "float32")
BATCH = {"source_ids": SOURCE, "target_ids": TARGET}


def make_model(**kwargs):
    keras.utils.set_random_seed(2017)
    model = kt.Transformer(V, SMALL, **kwargs)
    model.build()
    return model


def as_array(x):
    return np.array(ops.convert_to_numpy(ops.cast(x, "float32")))


def reload(model, custom_objects=None):
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        return keras.saving.load_model(f"{folder}/model.keras", custom_objects)


def relative_error(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def compile_model(model, *args, **kwargs):
    model.compile(*args, loss=kt.SmoothedCrossentropy(), jit_compile=JIT, **kwargs)


def train(model, labels=LABELS, **kwargs):
    history = model.fit(BATCH, labels, batch_size=4, verbose=0, **kwargs)
    return {name: values[-1] for name, values in history.history.items()}


def check_compiles_as_published():
    model = make_model()
    model.compile_as_published("tiny", jit_compile=JIT)

    result = train(model)

    assert {"accuracy", "loss", "perplexity"} <= result.keys()
    optimizer = model.optimizer
    numbers = optimizer.beta_1, optimizer.beta_2, optimizer.epsilon
    assert numbers == (0.9, 0.98, 1e-9)
    rate = kt.TransformerSchedule(32, warmup_steps=500)(0)  # Of the first update.
    np.testing.assert_allclose(as_array(rate), 32**-0.5 * 500**-1.5, rtol=1e-5)
    assert model.loss.label_smoothing == 0.1
    recipe = kt.Recipe(label_smoothing=0.3)
    for given in (recipe, kt.Preset("of this test", recipe=recipe)):
        model.compile_as_published(given)
        assert model.loss.label_smoothing == 0.3


def decode_greedily(model, source, limit, bos_id, eos_id):
    """Returns the tokens of one translation, each from the whole prefix."""
    ids = []
    while len(ids) < limit - 1 and eos_id not in ids:
        # Of one shape always, which JAX compiles once.
        target = np.zeros((1, SOURCE.shape[1] + 3), "int32")
        target[0, : len(ids) + 1] = bos_id, *ids
        logits = as_array(model([source[None], target]))[0, len(ids)]
        logits[[0, bos_id]] = -np.inf
        ids.append(int(logits.argmax()))
    return ids if eos_id in ids else [*ids, eos_id]


def compare_greedy(model, found, bos_id=3, eos_id=1):
    """Compares with searches from the whole prefix; `max_extra_length` is 3."""
    found = as_array(found).astype(int)
    assert found.any(axis=0).all()  # No column is padding alone.
    for row, source in zip(found, SOURCE, strict=True):
        limit = np.count_nonzero(source) + 3
        expected = decode_greedily(model, source, limit, bos_id, eos_id)
        np.testing.assert_array_equal(row[: len(expected)], expected)
        assert not row[len(expected) :].any()


def check_generates():
    """A fresh model, a trained and a loaded one; any begin and end."""
    fresh, trained = make_model(), make_model()
    trained.compile_as_published("tiny", jit_compile=JIT)
    train(trained, epochs=2)
    for model, bos_id, eos_id in ((fresh, 3, 1), (trained, 9, 7)):
        # Logits far enough apart that no rounding decides.
        model.embedding.embeddings.assign(3 * model.embedding.embeddings)
        generated = model.generate(
            SOURCE, beam_size=1, max_extra_length=3, bos_id=bos_id, eos_id=eos_id
        )
        compare_greedy(model, generated, bos_id, eos_id)

    beams = [
        as_array(m.generate(SOURCE, max_extra_length=5))
        for m in (trained, reload(trained))
    ]
    np.testing.assert_array_equal(*beams)
    assert beams[0].any(axis=0).all()


class OfUsers(keras.Model):
    """A model whose config has no build shapes: Keras calls it with floats."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = kt.TokenEmbedding(300, 8)
        self.encoder = kt.Encoder(1, num_heads=2, intermediate_dim=16)

    def call(self, ids):
        return self.embedding(self.encoder(self.embedding(ids)), reverse=True)


def check_loads_inside_a_model_of_users():
    model = OfUsers()
    ids = np.array([[250, 3, 0], [299, 0, 0]])
    expected = as_array(model(ids))

    with warnings.catch_warnings(action="error"):
        warnings.filterwarnings("ignore", message="__array__ implementation")
        again = reload(model, {"OfUsers": OfUsers})

    np.testing.assert_array_equal(as_array(again(ids)), expected)


def check_takes_ids_of_a_float_dtype():
    """As of a `keras.Input` without a dtype, with their mask."""
    for dtype in ("float32", "mixed_bfloat16"):
        layer = kt.TokenEmbedding(1000, 8, dtype=dtype)
        encoder = kt.Encoder(1, num_heads=2, intermediate_dim=16)
        ids = np.array([[999, 257, 0], [3, 0, 0]])  # bfloat16 has no 257.
        expected = as_array(encoder(layer(ids)))

        inputs = keras.Input((None,))
        model = keras.Model(inputs, encoder(layer(inputs)))

        for given in (ids, ids.astype("float32")):
            found = as_array(model(given))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        alone = as_array(encoder(layer(ids[1:, :1])))
        np.testing.assert_allclose(found[1:, :1], alone, rtol=1e-4, atol=1e-5)


def check_models_take_ids_of_a_float_dtype():
    """Called, predicted, evaluated and within another model, as if they were ints."""
    ids = np.array([[2909, 2911, 257], [4095, 3, 0]])  # bfloat16 has none but 3.
    source = keras.Input((None,), name="source_ids")
    target = keras.Input((None,), name="target_ids")
    pair = {"source_ids": source, "target_ids": target}
    for cls, inputs in ((kt.Transformer, pair), (kt.LanguageModel, target)):
        own = cls.from_preset("tiny", 4096, num_layers=1, dtype="mixed_bfloat16")
        within = keras.Model(inputs, own(inputs))
        for model in (within, reload(own)):
            compile_model(model, "sgd")
            found = []
            for dtype in ("int32", "float64"):
                x = keras.tree.map_structure(lambda _, d=dtype: ids.astype(d), inputs)
                predicted = model.predict(x, verbose=0)
                found.append([predicted, model.evaluate(x, ids, verbose=0)])
                np.testing.assert_allclose(as_array(model(x)), predicted, atol=0.2)
            for predicted, loss in found[1:]:
                np.testing.assert_array_equal(predicted, found[0][0])
                assert loss == found[0][1]


def check_freezes_before_it_is_built():
    """A stack, a layer, a model, and one layer of a frozen stack."""
    x = np.ones((1, 3, 8), "float32")
    for layer in (
        kt.Encoder(2, num_heads=2, intermediate_dim=16, norm="pre"),
        kt.DecoderLayer(num_heads=2, intermediate_dim=16, mixer="ssru"),
        kt.MultiHeadAttention(num_heads=2, key_dim=4),
    ):
        layer.trainable = False
        layer(*[x] * (1 + isinstance(layer, kt.MultiHeadAttention)))
        assert layer.weights
        assert not any(weight.trainable for weight in layer.weights)
    stack = kt.Encoder(2, num_heads=2, intermediate_dim=16)
    stack.trainable = False
    stack.layers[1].trainable = True
    stack(x)
    assert [w.trainable for w in stack.weights] == [False] * 12 + [True] * 12

    model = kt.Transformer(V, SMALL)
    model.encoder.trainable = False
    model(BATCH)

    assert len(model.weights) - len(model.trainable_weights) == 12


def check_needs_no_build():
    model = kt.Transformer(V, SMALL)

    assert len(model.weights) == 31
    cache = model.decoder.make_cache(3, ops.ones((2, 5, 32)))
    assert cache.self_caches[0].keys.shape == (2, 4, 3, 8)


def count_calls(layer):
    """Returns a list that grows with each call of a layer in Python."""
    calls, call = [], layer.call

    def counted(*args, **kwargs):
        calls.append(1)
        return call(*args, **kwargs)

    layer.call = counted
    return calls


def check_compiles_the_search_once():
    model = make_model()
    first = as_array(model.generate(SOURCE, max_extra_length=2))
    calls = count_calls(model.position_encoding)

    again = model.generate(SOURCE, max_extra_length=2)
    assert (as_array(again) == first).all()
    model.generate(SOURCE, length_penalty=1.0, max_extra_length=2)
    compiles = keras.backend.backend() != "torch"
    assert bool(calls) != compiles

    model.generate(SOURCE, beam_size=2, max_extra_length=2)
    assert calls  # Another function.
    # New weights count, and new kinds of weights.
    model.set_weights([0 * weight for weight in model.get_weights()])
    assert (as_array(model.generate(SOURCE, max_extra_length=2)) != first).any()
    count = len(calls)
    model.encoder.layers[0].attention.query_projection.enable_lora(rank=2)
    model.generate(SOURCE, max_extra_length=2)
    assert len(calls) > count


def check_generates_nothing_from_nothing():
    model = make_model()

    assert model.generate(SOURCE[:0], max_extra_length=2).shape == (0, 0)
    shortest = model.generate(SOURCE * 0, max_extra_length=0)
    assert (as_array(shortest)[:, 0] == 1).all()


def check_generates_no_columns_of_padding():
    architecture = dataclasses.replace(SMALL, logits_bias=True)
    model, language_model = (
        cls(V, architecture) for cls in (kt.Transformer, kt.LanguageModel)
    )
    for each in (model, language_model):
        each.embedding.bias.assign(99.0 * np.eye(V)[1])  # It ends at once.
    assert as_array(model.generate(SOURCE, max_extra_length=5)).tolist() == [[1]] * 4
    found = as_array(language_model.generate(LABELS, max_extra_length=5))
    np.testing.assert_array_equal(found, np.pad(LABELS, ((0, 0), (0, 1))) + ENDS)


class OtherDecode(kt.Transformer):
    decode = keras.Model.call


def check_refuses_in_words():
    model, tiny = make_model(), kt.Transformer(1, SMALL)
    compile_model(model)
    language_model = kt.LanguageModel(V, SMALL)
    broken = make_model()
    broken.embedding.embeddings.assign(broken.embedding.embeddings * float("nan"))
    for message, call in (
        ("a decoder that is built", lambda: kt.Decoder(1, 2, 16).make_cache(2, rows=2)),
        ("which overrides decode", lambda: OtherDecode(V, SMALL).generate(SOURCE)),
        (r"source_ids of shape \(7,\)", lambda: model.generate(SOURCE[0])),
        (r"target_ids of shape \(6,\)", lambda: model([SOURCE, TARGET[0]])),
        (r"Call it as `model\(\[.*Received: 2 inputs", lambda: model(SOURCE, TARGET)),
        (r"Call it as `model\(\[.*Received: 0", lambda: model(source_ids=SOURCE)),
        (r"Call it as `model\(\[.*\]\)`.*Received: nd", lambda: model(SOURCE)),
        (r"Call it as `model\(\[", lambda: model([SOURCE, TARGET, TARGET])),
        (r"Call it as `model\(ids\)`", lambda: language_model(SOURCE, TARGET)),
        ("inputs of type dict", lambda: language_model(BATCH)),
        ("source_ids of type list", lambda: model([["A cat."], ["Un gato."]])),
        ("source_ids of type str", lambda: model(["A cat.", "Un gato."])),
        (r"shape \(1,\), dtype <U6", lambda: model.generate(["A cat."])),
        ("source_ids of type list", lambda: model.generate([[7, 5, 1], [7, 1]])),
        ("from 0 to 18. Received: source_ids with 19", lambda: model([LARGE, TARGET])),
        ("Received: target_ids with -1", lambda: model([SOURCE, TARGET - 1])),
        ("Received: source_ids with [23].5", lambda: model([SOURCE / 2, TARGET])),
        ("Received: source_ids with 19", lambda: model.generate(LARGE)),
        ("Received: prompt_ids with 19", lambda: language_model.generate(LARGE)),
        *(
            (r"labels are ids\[:, 1:\]", functools.partial(score, labels, LOGITS))
            for score in (kt.SmoothedCrossentropy(), kt.Perplexity().update_state)
            for labels in (SOURCE, TARGET[:, 0], np.eye(V)[TARGET])
        ),
        (r"labels are ids\[:, 1:\]", lambda: train(model, labels=SOURCE)),
        ("without target_ids", lambda: model({"source_ids": SOURCE})),
        ("Received: 4 and 3", lambda: model([SOURCE, TARGET[:3]])),
        ("the vocabulary, 1. Received: bos_id=3", lambda: tiny.generate(SOURCE * 0)),
        ("must be finite", lambda: broken.generate(SOURCE)),
        (
            r"Received: shape \(4,\)",
            lambda: kt.Encoder(1, 2, 16)(np.ones((4, 7, 8)), mask=np.ones(4)),
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="must be as long as `value`"):
        kt.MultiHeadAttention(2, 4)(*np.ones((2, 2, 3, 8)), np.ones((2, 2, 8)))


def check_exchanges_weights_with_the_attention_of_keras():
    x, y = RANDOM.normal(size=(2, 3, 5, 8)).astype("float32")
    mask = np.arange(5) < [[3], [5], [1]]
    for value_dim, use_bias, value in ((6, True, y), (None, False, x)):
        ours, back = (
            kt.MultiHeadAttention(2, 4, value_dim, use_bias=use_bias) for _ in range(2)
        )
        theirs = keras.layers.MultiHeadAttention(
            2, 4, value_dim, use_bias=use_bias, bias_initializer="glorot_uniform"
        )
        for layer in (ours, theirs, back):
            layer.build(x.shape, value.shape)
        kt.copy_attention_weights(theirs, ours)
        for arguments in ({"use_causal_mask": True}, {"value_mask": mask}):
            # On JAX Keras's fused attention cannot have another `value_dim`.
            arguments["return_attention_scores"] = True
            expected = as_array(theirs(x, value, **arguments)[0])
            found = as_array(ours(x, value, **arguments)[0])
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        theirs.set_weights([0 * w for w in theirs.get_weights()])
        kt.copy_attention_weights(ours, theirs)
        kt.copy_attention_weights(theirs, back)
        for old, new in zip(ours.get_weights(), back.get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)
        for other in (kt.MultiHeadAttention(4, 2), kt.MultiHeadAttention(2, 5)):
            other.build(x.shape, value.shape)
            with pytest.raises(ValueError, match="as many heads"):
                kt.copy_attention_weights(ours, other)
    with pytest.raises(ValueError, match="must be built"):
        kt.copy_attention_weights(*(kt.MultiHeadAttention(2, 4) for _ in range(2)))


def check_attention_takes_initializers_regularizers_and_constraints():
    given = {
        "kernel_initializer": keras.initializers.RandomNormal(stddev=3.0),
        "bias_initializer": "ones",
        "kernel_regularizer": keras.regularizers.L2(0.5),
        "bias_regularizer": "l1",
        "kernel_constraint": keras.constraints.MaxNorm(2.0),
        "bias_constraint": "non_neg",
    }
    layer = kt.MultiHeadAttention(2, 4, use_bias=True, **given)
    theirs = keras.layers.MultiHeadAttention(2, 4, **given)
    config = theirs.get_config()
    assert {name: layer.get_config()[name] for name in given} == {
        name: config[name] for name in given
    }
    for made in (layer, type(layer).from_config(layer.get_config())):
        made.build((None, None, 8), (None, None, 8))
        kernels, biases = made.get_weights()[::2], made.get_weights()[1::2]
        assert all((bias == 1).all() for bias in biases)
        assert 2 < np.std(kernels[0]) < 4
        assert (kernels[0] != kernels[1]).all()  # Each with numbers of its own.
        expected = sum(0.5 * (k**2).sum() for k in kernels)
        expected += sum(0.01 * b.sum() for b in biases)
        np.testing.assert_allclose(sum(map(as_array, made.losses)), expected, 1e-4)
        for projection in (made.query_projection, made.output_projection):
            assert projection.kernel.constraint.max_value == 2.0
            assert projection.bias.constraint is not None


def check_takes_what_keras_takes():
    """Ints of NumPy, masks `(B, S, S)`, activations that are functions."""
    layer = kt.EncoderLayer(np.int64(2), 16, activation=keras.activations.gelu)
    again = kt.EncoderLayer.from_config(layer.get_config())
    assert again.activation is keras.activations.gelu
    assert type(again.num_heads) is int
    causal = kt.causal_mask(3)
    x = RANDOM.normal(size=(2, 3, 8)).astype("float32")
    changed = np.concatenate([x[:, :2], -x[:, 2:]], axis=1)
    one, other = (
        as_array(layer(y, mask=ops.broadcast_to(causal, (2, 3, 3))))
        for y in (x, changed)
    )
    np.testing.assert_allclose(one[:, :2], other[:, :2], rtol=1e-5)
    assert not np.allclose(one[:, 2], other[:, 2])

    architecture = dataclasses.replace(SMALL, activation=keras.activations.silu)
    model = kt.Transformer(V, architecture)
    np.testing.assert_array_equal(
        as_array(reload(model)(BATCH)), as_array(model(BATCH))
    )


class OtherOutput(kt.Transformer):
    """The output layer is a `Dense`, which never says what the ids are."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.head = keras.layers.Dense(V, name="head")

    def build(self, input_shape=None):
        self.head.build((None, None, 32))
        super().build(input_shape)

    def compute_logits(self, states):
        return self.head(states)


class OtherEncoder(kt.Transformer):
    def encode(self, source_ids, **kwargs):
        return -super().encode(source_ids, **kwargs)


class Negative(kt.TokenEmbedding):
    def call(self, inputs):
        return -super().call(inputs)


class OtherSources(kt.Transformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.source_embedding = Negative(V, 32)

    def build(self, input_shape=None):
        self.source_embedding.build((None, None))
        super().build(input_shape)


def check_follows_a_subclass():
    for subclass in (OtherOutput, OtherEncoder, OtherSources):
        keras.utils.set_random_seed(3)
        model = subclass(V, SMALL)
        model.build()
        compare_greedy(model, model.generate(SOURCE, beam_size=1, max_extra_length=3))


PROMPTS = np.array([[5, 4, 0], [6, 0, 0], [0, 0, 0], [4, 5, 2]])


def check_continues_prompts():
    """The best of all sequences, each scored by an uncached call."""
    keras.utils.set_random_seed(5)
    model = kt.LanguageModel(7, dataclasses.replace(SMALL, positions="learned"))
    for weight in model.weights:
        weight.assign(weight + RANDOM.normal(0, 0.3, weight.shape))

    found = as_array(
        model.generate(PROMPTS, 25, length_penalty=0.8, max_extra_length=2)
    ).astype(int)
    greedy = as_array(model.generate(PROMPTS, max_extra_length=2)).astype(int)

    assert found.any(axis=0).all()
    found = np.pad(found, ((0, 0), (0, 6 - found.shape[1])))
    free = [2, 4, 5, 6]  # Neither padding nor BOS.
    for row, chosen, prompt in zip(found, greedy, PROMPTS, strict=True):
        prompt = [int(i) for i in prompt if i]
        rests = [
            [*rest, 1] for n in range(3) for rest in itertools.product(free, repeat=n)
        ]
        texts = [[*prompt, *rest] for rest in rests]
        ids = np.zeros((len(texts), 6), "int32")
        for i, text in enumerate(texts):
            ids[i, : len(text)] = text
        inputs = np.pad(ids, ((0, 0), (1, 0)), constant_values=3)[:, :-1]
        logits = as_array(ops.log_softmax(model(inputs)))
        of_tokens = np.take_along_axis(logits, ids[:, :, None], 2)[:, :, 0]
        lengths = (ids != 0).sum(axis=1)
        scores = (of_tokens * (ids != 0)).sum(axis=1) / ((5 + lengths) / 6) ** 0.8
        np.testing.assert_array_equal(row, ids[scores.argmax()])
        text = list(prompt)
        while len(text) < len(prompt) + 2 and 1 not in text:
            near = as_array(model(np.array([[3, *text]])))[0, -1]
            near[[0, 3]] = -np.inf
            text.append(int(near.argmax()))
        assert chosen.tolist()[: len(text)] == text


def check_searches_with_the_cache_of_a_decoder():
    """Of a language model, `beam_search` and `sample`."""
    model = kt.LanguageModel(7, SMALL)
    limits = np.full(2, 4)
    for beam_size in (1, 2):
        cache = model.decoder.make_cache(rows=2 * beam_size, max_length=4)
        options = kt.SearchOptions(beam_size)
        best = kt.beam_search(model.decode_step, cache, options, limits, max_length=4)
        assert best.ids.shape == (2, beam_size, 4)
    cache = model.decoder.make_cache(rows=2, max_length=4)
    sampling = kt.Sampling(seeds=np.array([1, 2]), top_k=1)

    found = kt.sample(model.decode_step, cache, options, limits, sampling, max_length=4)

    greedy = model.generate(np.zeros((2, 0), "int32"), max_extra_length=3)
    np.testing.assert_array_equal(as_array(found.ids)[:, 0], as_array(greedy))


def check_has_lora():
    model = make_model()
    before = as_array(model(BATCH))
    projection = model.encoder.layers[0].attention.query_projection
    weights = len(model.trainable_weights)
    kernel = as_array(projection.kernel)
    projection.enable_lora(rank=2)

    # Two small matrices instead of the kernel.
    assert len(projection.trainable_weights) == 2
    assert len(model.trainable_weights) == weights + 1
    np.testing.assert_allclose(as_array(model(BATCH)), before, atol=1e-6)
    compile_model(model, keras.optimizers.Adam(0.1))
    train(model, epochs=3)
    assert relative_error(as_array(projection.kernel), kernel) > 1e-3


def check_rematerializes():
    """The feed-forward networks, where most is stored.

    `mode="full"` fails inside Keras for any layer with keyword arguments, see
    https://github.com/keras-team/keras/issues/21207.
    """
    scope = keras.RematScope(mode="list_of_layers", layer_names=["feed_forward"])
    with scope:
        scoped = make_model()
    losses = []
    for model in (scoped, make_model()):
        compile_model(model, keras.optimizers.SGD(0.1))
        losses.append(train(model, epochs=3)["loss"])

    np.testing.assert_allclose(*losses, rtol=1e-5)


def check_may_leave_out_padding_with_the_loss_of_keras():
    logits = make_model()(BATCH)
    theirs = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=0
    )

    expected = kt.SmoothedCrossentropy(label_smoothing=0.0)(LABELS, logits)

    np.testing.assert_allclose(
        as_array(theirs(LABELS, logits)), as_array(expected), rtol=1e-5
    )


def check_knows_where_learned_positions_end():
    layer = kt.PositionEmbedding(sequence_length=5)
    x = ops.zeros((1, 3, 4))
    layer.build(x.shape)

    for start_index in (3, ops.convert_to_tensor(3)):
        with pytest.raises(ValueError, match="5 positions.*start_index=3"):
            layer(x, start_index=start_index)
    assert layer(x, start_index=2).shape == (1, 3, 4)
    if keras.backend.backend() == "jax":  # Traced, nothing can be raised.
        import jax

        vectors = jax.jit(lambda index: layer(x, start_index=index))(3)
        assert np.isnan(as_array(vectors)).all()
        vectors = jax.jit(lambda index: layer(x, start_index=index))(2)
        assert np.isfinite(as_array(vectors)).all()


def check_takes_any_length():
    inputs, ids = keras.Input((None, 16)), keras.Input((None,), dtype="int32")
    x = RANDOM.normal(size=(2, 7, 16)).astype("float32")
    for layer in (
        kt.SSRU(),
        kt.Decoder(1, 2, 32, mixer="ssru"),
        kt.RestrictedSelfAttention(2, 8, radius=3),
    ):
        model = keras.Model(inputs, layer(inputs))
        np.testing.assert_allclose(as_array(model(x)), as_array(layer(x)), atol=1e-6)
    learned = dataclasses.replace(SMALL, positions="learned")
    language_model = kt.LanguageModel(V, learned)
    model = keras.Model(ids, language_model(ids))
    assert model(np.ones((2, 7), "int32")).shape == (2, 7, V)


def check_keeps_the_state_of_a_recurrence():
    """In lower precision, step by step as at once."""
    decoder = kt.Decoder(2, 2, 32, mixer="ssru", dtype="mixed_bfloat16")
    x = RANDOM.normal(size=(2, 9, 16)).astype("float32")
    whole = as_array(decoder(x))
    cache = decoder.make_cache(9, rows=2)
    for t in range(9):
        step, cache = decoder(x[:, t : t + 1], cache=cache)
        np.testing.assert_allclose(as_array(step)[:, 0], whole[:, t], atol=0.1)
    # A difference that bfloat16 does not have makes one after a step.
    found = []
    for value in (1.0, 1.0 + 2.0**-12):
        state = ops.full((2, 16), value, "float32")
        first = cache.self_caches[0]._replace(state=state)
        caches = (first, *cache.self_caches[1:])
        _, after = decoder(x[:, :1], cache=cache._replace(self_caches=caches))
        found.append(as_array(after.self_caches[0].state))
    assert (found[0] != found[1]).all()


CHECKS = [check for name, check in globals().items() if "check_" in name]

if __name__ == "__main__":
    gc.freeze()  # See `tests/conftest.py`.
    for check in CHECKS:
        print(check.__name__, flush=True)
        check()
