"""Serves a folder over HTTP from this process."""

import contextlib
import functools
import http.server
import threading


class Handler(http.server.SimpleHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serve_folder(folder):
    """Gives the address of a folder, which ends with a slash."""
    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
