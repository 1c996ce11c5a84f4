"""SSRU, a recurrence instead of the decoder's self-attention."""

import keras
from keras import ops

from keras_transformer.argument_checks import check_sequence_shape
from keras_transformer.layers.cache import RecurrentCache
from keras_transformer.layers.composite_layer import CompositeLayer


@keras.saving.register_keras_serializable(package="keras_transformer")
class SSRU(CompositeLayer):
    """The simpler simple recurrent unit, SSRU, of Kim et al. (2019).

    Computes for each position `t`, from `c_0 = 0` on:

        f_t = sigmoid(W_f x_t + b_f)
        c_t = f_t * c_{t-1} + (1 - f_t) * W x_t
        h_t = max(0, c_t)

    ("From Research to Production and Back: Ludicrously Fast Neural Machine
    Translation", Section 3.1). Like masked self-attention, a position depends
    on itself and earlier positions; but a search keeps one vector of these,
    however many they are.

    The positions of a sequence are computed in parallel, in `log2(T)` steps:
    step `i` combines each position with the one `2^i` before it.

    Args:
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Bool tensor `(B, T)`, False where a position is padding.
        cache: `RecurrentCache`, the initial state, or `None` for zeros.

    Returns:
        Float tensor `(B, T, D)`, `h`, in the compute dtype; with `cache`, a
        tuple of it and the cache after the last position.

    Masking:
        Padding leaves the state unchanged. The mask is passed through.

    Raises:
        ValueError: If the last dimension of `inputs` is unknown when the layer
            is built.

    Example:
        >>> layer = keras_transformer.SSRU()
        >>> keras.ops.shape(layer(keras.ops.ones((2, 7, 512))))
        (2, 7, 512)
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        # The cached state stays in float32; the maps cast their inputs.
        self.autocast = False

    def build(self, input_shape):
        check_sequence_shape("inputs", input_shape)
        width = input_shape[-1]
        self.forget = self.make_linear("forget", width, input_shape)
        self.update = self.make_linear("update", width, input_shape, use_bias=False)

    def call(self, inputs, mask=None, cache=None):
        # In float32: a product of many gates.
        forget_gate = ops.sigmoid(ops.cast(self.forget(inputs), "float32"))
        update = ops.cast(self.update(inputs), "float32")
        update = (1.0 - forget_gate) * update
        if mask is not None:
            forget_gate = ops.where(mask[:, :, None], forget_gate, 1.0)
            update = ops.where(mask[:, :, None], update, 0.0)
        decay, states = run_recurrence(forget_gate, update)
        if cache is not None:
            states = states + decay * cache.state[:, None]
        outputs = ops.cast(ops.relu(states), self.compute_dtype)
        if cache is None:
            return outputs
        length = cache.length + ops.shape(inputs)[1]
        return outputs, RecurrentCache(states[:, -1], length)

    def make_cache(self, rows, max_length):
        """Makes the initial `RecurrentCache`, which holds any length."""
        state = ops.zeros((rows, self.forget.units), "float32")
        return RecurrentCache(state, ops.zeros((), "int32"))


def run_recurrence(decay, update):
    """Runs `c_t = decay_t * c_{t-1} + update_t` over a sequence, from zeros.

    Returns the products of all `decay` up to `t`, and the `c_t`: `(B, T, D)`.
    """
    length = ops.shape(update)[1]

    def join(stride, decay, update):
        update = update + decay * shift_positions(update, stride, 0.0)
        return 2 * stride, decay * shift_positions(decay, stride, 1.0), update

    state = (1, decay, update)
    if not isinstance(length, int):  # Unknown until the graph runs.
        state = ops.while_loop(
            lambda stride, *_: stride < length,
            join,
            state,
            maximum_iterations=length,  # Needed by XLA for the gradient.
        )
    else:
        while state[0] < length:
            state = join(*state)
    return state[1:]


def shift_positions(x, stride, fill):
    """Shifts `(B, T, D)` by a number of positions, and fills the first ones."""
    positions = ops.arange(ops.shape(x)[1]) - stride
    moved = ops.take(x, ops.maximum(positions, 0), axis=1)
    return ops.where((positions >= 0)[:, None], moved, fill)
