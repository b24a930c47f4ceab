"""One file per program; each has `run(spec, *, slot_dir)` and answers with one payload."""
