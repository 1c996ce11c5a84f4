"""Reads API keys and models anew on SIGHUP, while requests are answered."""

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable

from serve.api_keys import ApiKeys
from serve.translation_service import TranslationService


class Reloader:
    """Reloads keys and models, once at a time.

    Args:
        keys: The keys, which are read from their file.
        service: The service, whose models are replaced.
        load_models: Function without arguments that returns warm models, or
            `None` if models stay.
    """

    def __init__(
        self, keys: ApiKeys, service: TranslationService, load_models: Callable | None
    ):
        self._keys, self._service = keys, service
        self._load_models = load_models
        self._lock = asyncio.Lock()

    async def reload(self) -> None:
        """Reloads; logs an error, and then keeps what could not be read."""
        async with self._lock:
            try:
                self._keys.reload()
                if self._load_models:
                    models = await asyncio.to_thread(self._load_models)
                    self._service.replace_models(models)
            except Exception as error:
                print(f"not reloaded: {error}", file=sys.stderr, flush=True)
            else:
                print("reloaded", file=sys.stderr, flush=True)

    @contextlib.asynccontextmanager
    async def on_hangup(self) -> AsyncIterator[None]:
        """Reloads on SIGHUP while the context is open, in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, tasks = asyncio.get_running_loop(), set()

        def start():
            task = loop.create_task(self.reload())
            tasks.add(task)  # The loop keeps weak references only.
            task.add_done_callback(tasks.discard)

        loop.add_signal_handler(signal.SIGHUP, start)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
