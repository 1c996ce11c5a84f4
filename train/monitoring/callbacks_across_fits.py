"""Keras callback that calls other callbacks throughout a run."""

from collections.abc import Sequence

import keras


class CallbacksAcrossFits(keras.callbacks.Callback):
    """Begins and ends other callbacks once, however often `fit` is called.

    A run may need several calls of `fit`. `CSVLogger` would truncate its file
    at the beginning of each, and `EarlyStopping` would forget the best epoch.

    All get the same logs, so that what one adds reaches those after it; a
    `keras.callbacks.CallbackList` would copy them.

    Args:
        callbacks: The callbacks.
    """

    def __init__(self, callbacks: Sequence[keras.callbacks.Callback]):
        super().__init__()
        self._callbacks = list(callbacks)
        self._begun = False

    def set_params(self, params):
        super().set_params(params)
        self._call("set_params", params)

    def set_model(self, model):
        super().set_model(model)
        self._call("set_model", model)

    def on_train_begin(self, logs=None):
        if not self._begun:
            self._call("on_train_begin", logs)
            self._begun = True

    def end(self) -> None:
        """Ends the callbacks, if training began."""
        if self._begun:
            self._call("on_train_end")

    def _call(self, name, *args, **kwargs):
        for callback in self._callbacks:
            getattr(callback, name)(*args, **kwargs)


def forward(name):
    """Returns a method that calls the same one of each callback."""

    def call(self, *args, **kwargs):
        self._call(name, *args, **kwargs)

    return call


HOOKS = """
on_epoch_begin on_epoch_end on_test_begin on_test_end
on_train_batch_begin on_train_batch_end on_test_batch_begin on_test_batch_end
"""
for hook in HOOKS.split():
    setattr(CallbacksAcrossFits, hook, forward(hook))
