"""PyTorch: training losses, metrics in the loop, ensembles and uncertainty distillation.

    from raterwise.torch import losses, metrics, ensembles, distillation

Needs the extra "torch"; nothing else in raterwise imports this package.
"""

from raterwise.errors import missing_extra

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise missing_extra("raterwise.torch needs PyTorch and torchmetrics", "torch") from error


from raterwise.tensors.device import summarise

__all__ = ["alpha", "distillation", "ensembles", "losses", "metrics", "monai", "summarise"]
