"""PyTorch: training losses, metrics in the loop, ensembles and uncertainty distillation.

    from raterwise.torch import losses, metrics, ensembles, distillation

Needs the extra "torch"; nothing else in raterwise imports this package.
"""

from importlib import import_module
from typing import Any

from raterwise.errors import missing_extra

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise missing_extra("raterwise.torch needs PyTorch and torchmetrics", "torch") from error


from raterwise.tensors.device import summarise

__all__ = ["alpha", "distillation", "ensembles", "losses", "metrics", "monai", "summarise"]


def __getattr__(name: str) -> Any:
    # So that `rw.torch.losses` works without an import of its own; each loads when asked for.
    if name in __all__:
        return import_module(f"raterwise.torch.{name}")
    raise AttributeError(f"module 'raterwise.torch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
