"""compact-trace, trace summary and trace doctor over every real trace, in a child of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.traces import SHARED_TRACES, all_shared_traces

pytestmark = pytest.mark.process

_SCRIPT = """
import contextlib, io, json, sys
from perfkit.cli import main

def call(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.run(list(words))
    return {"code": code, "out": out.getvalue()[:200], "err": err.getvalue()[-2000:]}

folder, *traces = sys.argv[1:]
for index, trace in enumerate(traces):
    answers = {
        "compact": call("compact-trace", trace, "-o", f"{folder}/{index}.json.gz"),
        "summary": call("trace", "summary", trace, "--json"),
        "doctor": call("trace", "doctor", trace, "--json"),
    }
    print(json.dumps({"trace": trace, **answers}), flush=True)
"""


def test_every_shared_trace_is_compacted_summed_up_and_examined(tmp_path: Path) -> None:
    names = all_shared_traces()
    if not names:
        pytest.skip(f"the shared traces are not on this machine ({SHARED_TRACES} is absent)")
    paths = [str(SHARED_TRACES / f"{name}.json.gz") for name in names]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path), *paths],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(text) for text in done.stdout.splitlines()]
    assert len(answers) == len(names)
    for answer in answers:
        assert answer["compact"]["code"] == 0, answer
        assert answer["summary"]["code"] == 0, answer
        assert answer["doctor"]["code"] in (0, 3), answer
        assert "Traceback" not in json.dumps(answer)
