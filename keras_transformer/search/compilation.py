"""Compiles searches over a model, once for each set of options."""

import dataclasses
import functools

import keras
from keras import ops

# Options that may differ from call to call of one compiled function.
NUMBERS = {
    "length_penalty": "float32",
    "no_repeat_ngram": "int32",
    "min_length": "int32",
}


class CompiledSearches:
    """The compiled searches over a model.

    They are dropped when weights are replaced, as by `enable_lora`.
    """

    def __init__(self):
        self._weights = []
        self._functions = {}

    def find(self, model, key, compile_function):
        """Returns the function of a key, compiled if there is none."""
        weights = model.weights
        if [*map(id, weights)] != [*map(id, self._weights)]:
            self._weights, self._functions = weights, {}
        if key not in self._functions:
            self._functions[key] = compile_function()
        return self._functions[key]


def compiled_call(model, search, options, tensors, max_length):
    """Calls a search, compiled by TensorFlow or JAX; torch does not compile.

    `search` takes `model`, `options`, `max_length` and the tensors by name, of
    which `max_lengths` is one; `None` means the largest of these.
    """
    if max_length is None:
        max_length = ops.max(tensors["max_lengths"], initial=1)
    backend = keras.backend.backend()
    tensors = {name: ops.cast(x, "int32") for name, x in tensors.items()}
    if backend == "tensorflow":
        import tensorflow as tf

        if not tf.executing_eagerly():  # The caller compiles.
            return search(model, options=options, max_length=max_length, **tensors)
        # A tensor, so that one function serves all lengths.
        tensors = {**tensors, "max_length": ops.cast(max_length, "int32")}
    else:
        tensors = {**tensors, "max_length": int(max_length)}
    # Rules that are off take no time.
    numbers = {
        name: ops.convert_to_tensor(getattr(options, name), dtype)
        for name, dtype in NUMBERS.items()
        if not isinstance(getattr(options, name), int) or getattr(options, name)
    }
    options = dataclasses.replace(options, **dict.fromkeys(numbers, 0))

    def run(tensors, numbers):
        return search(model, options=dataclasses.replace(options, **numbers), **tensors)

    compile_function = {
        "tensorflow": compile_by_tensorflow,
        "jax": compile_by_jax,
        "torch": run_without_gradients,
    }[backend]
    ranks = [(name, len(x.shape)) for name, x in numbers.items()]
    function = model.compiled_searches.find(
        model,
        (search, options, *tensors, *ranks),
        lambda: compile_function(run, model, tensors, numbers),
    )
    return function(tensors, numbers)


def compile_by_tensorflow(run, model, tensors, numbers):
    """Compiles for any sizes of the tensors."""
    import tensorflow as tf

    specs = tf.nest.map_structure(
        lambda x: tf.TensorSpec([None] * x.shape.rank, x.dtype), (tensors, numbers)
    )
    return tf.function(run, input_signature=specs, autograph=False)


def compile_by_jax(run, model, tensors, numbers):
    """Compiles for each size of the tensors."""
    import jax

    variables = model.variables

    @functools.partial(jax.jit, static_argnames="max_length")
    def run_stateless(values, tensors, numbers, max_length):
        mapping = zip(variables, values, strict=True)
        with keras.StatelessScope(state_mapping=list(mapping)):
            return run({**tensors, "max_length": max_length}, numbers)

    def call(tensors, numbers):
        arrays = dict(tensors)
        max_length = arrays.pop("max_length")
        values = [variable.value for variable in variables]
        return run_stateless(values, arrays, numbers, max_length=max_length)

    return call


def run_without_gradients(run, model, tensors, numbers):
    import torch

    return torch.no_grad()(run)
