"""HTTP translation service: LibreTranslate's API, batching, a web page."""

from command_line.quiet_tensorflow import start_tensorflow

start_tensorflow()
