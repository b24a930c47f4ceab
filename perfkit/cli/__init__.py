"""The command line: one thin module per command; `ui` is the only one that knows Rich."""
