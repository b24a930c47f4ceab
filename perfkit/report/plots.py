"""The plots of an effort, as PNG bytes: floors per case, variants with every process, kernel providers."""

from __future__ import annotations

from perfkit.report.plot_floors import floors_png
from perfkit.report.plot_providers import providers_png
from perfkit.report.plot_variants import variants_png

__all__ = ["floors_png", "providers_png", "variants_png"]
