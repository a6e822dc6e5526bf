"""PyTorch: training losses, metrics in the loop, ensembles and uncertainty distillation.

    from quorate.torch import losses, metrics, ensembles, distillation

Needs the extra "torch"; nothing else in quorate imports this package.
"""

from quorate.errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        'quorate.torch: needs PyTorch and torchmetrics; pip install "quorate[torch]"'
    ) from error


from quorate.engines.device import summarise

__all__ = ["distillation", "ensembles", "losses", "metrics", "summarise"]
