"""Everything people read or plot from an effort: tables, Markdown documents, CSV and PNG files."""
