"""new variant: the next numbered attempt of an effort, with the files to change and its notebook."""

from __future__ import annotations

from datetime import date

from perfkit.catalog import variant_sources
from perfkit.effort import variants
from perfkit.stages.answer import StageReport
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, opened
from perfkit.stages.session import prepare


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Copies the target's source (or the modules asked for) into variants/v<N>/ beside a notebook to fill in.

    Raises:
        UsageError: no such target or effort, or no such module.
    """
    session = prepare(request)
    sources = variant_sources(session.resolved, request.replaces)
    with opened(session, say=say) as effort:
        folder = variants.new_variant(
            effort.variants_dir,
            sources={relative: path.read_bytes() for relative, path in sources.items()},
            hypothesis=request.text,
            today=date.today(),
        )
        effort.note(f"New variant {folder.name}", *([request.text] if request.text else []))
    files = (folder / variants.NOTES, *(folder / relative for relative in sources))
    return StageReport(
        headline=(
            f"Made {folder}. Write the hypothesis and the predicted number into {variants.NOTES} first, "
            f"then change the code, then run `perfkit bench {effort.folder}`."
        ),
        document={"variant": folder.name, "files": [str(path) for path in files]},
        files=files,
    )
