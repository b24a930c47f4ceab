"""Everything that crosses a process border or is kept on disk: frozen msgspec structs, as JSON.

The rule for numbers: units are in the names, a time is in microseconds unless the name says
otherwise, and a value that was not measured is None, never 0. Non-finite floats never travel
(msgspec would write them as null): whoever could meet one carries a count or a flag instead.
"""
