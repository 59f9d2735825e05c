"""Kernels between rows and fixed landmarks as operators: a function of the kernel's name in one of three modules."""

from __future__ import annotations

from kafeat.onnx.landmarks import distance, entrywise, products
from kafeat.onnx.landmarks.products import Form


def landmark_form(kernel: str) -> Form:
    """Return the operators of the kernel of that name."""
    for module in (distance, entrywise, products):
        if hasattr(module, kernel):
            form: Form = getattr(module, kernel)
            return form
    raise KeyError(kernel)
