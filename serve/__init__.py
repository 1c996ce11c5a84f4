"""HTTP translation service: LibreTranslate's API, batching, a web page."""
