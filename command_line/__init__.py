"""Code that all commands share: options, user errors and text files."""
