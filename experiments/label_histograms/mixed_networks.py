"""The networks of Mix-MNIST and Mix-CIFAR-10 (LH appendix E.2): a body and a head of two layers."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["MixedNetwork", "augmented", "network_of", "vgg16"]

HIDDEN, DROPOUT = 128, 0.5
VGG16 = (64, 64, "pool", 128, 128, "pool", 256, 256, 256, "pool") + 2 * (512, 512, 512, "pool")


class MixedNetwork(nn.Module):
    """A body of convolutions, then dropout, 128 hidden units, dropout and the logits.

    Images are 0 … 255; the hidden units are the features of α-calibration (appendix E.4).

    >>> network_of("mixed_mnist")(torch.zeros(1, 1, 28, 28)).shape
    torch.Size([1, 10])
    """

    def __init__(self, body: nn.Module, pooled: int, classes: int = 10) -> None:
        super().__init__()
        self.body = body
        self.hidden = nn.Linear(pooled, HIDDEN)
        self.last = nn.Linear(HIDDEN, classes)
        self.dropout = nn.Dropout(DROPOUT)

    def pooled(self, images: Tensor) -> Tensor:
        """Return what the head is given: (N, pooled), not negative."""
        quick = self.training and images.is_cuda
        scaled = (images.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)
        with torch.autocast(images.device.type, dtype=torch.bfloat16, enabled=quick):
            found: Tensor = self.body(scaled)
        return found.float()

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits."""
        hidden = torch.relu(self.hidden(self.dropout(self.pooled(images))))
        logits: Tensor = self.last(self.dropout(hidden))
        return logits


def network_of(name: str, width: float = 1.0, batch_norm: bool = True) -> MixedNetwork:
    """Return the network of a data set from random weights; `width` scales its channels."""
    if name == "mixed_mnist":
        return _three_layers(width)
    return vgg16(width, batch_norm=batch_norm)


def _three_layers(width: float) -> MixedNetwork:
    """Return LH's network of Mix-MNIST: 5x5, 7x7 and 11x11 convolutions."""
    a, b, c = (max(1, int(channels * width)) for channels in (32, 64, 128))
    body = nn.Sequential(
        *(nn.Conv2d(1, a, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)),
        *(nn.Conv2d(a, b, 7, padding=3), nn.ReLU(), nn.MaxPool2d(4, ceil_mode=True)),
        *(nn.Conv2d(b, c, 11, padding=5), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )
    return MixedNetwork(body, c)


def vgg16(
    width: float = 1.0, channels: int = 3, classes: int = 10, *, batch_norm: bool = True
) -> MixedNetwork:
    """Return VGG16's convolutions with batch norm, then the largest value of each channel.

    Without batch norm, as the released code has it, weights begin as Keras' do.
    """
    layers: list[nn.Module] = []
    before = channels
    for step in VGG16:
        if isinstance(step, str):
            layers.append(nn.MaxPool2d(2))
            continue
        after = max(1, int(step * width))
        convolution = nn.Conv2d(before, after, 3, padding=1, bias=not batch_norm)
        if batch_norm:
            layers += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
        else:
            nn.init.xavier_uniform_(convolution.weight)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            layers += [convolution, nn.ReLU()]
        before = after
    body = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten())
    return MixedNetwork(body, before, classes)


def augmented(
    images: Tensor, *, turn: float = 20.0, shift: float = 5.0, zoom: float = 0.2
) -> Tensor:
    """Return images turned, shifted, zoomed and mirrored at random, each in its own way.

    Degrees, pixels and a share of the size, each up to the number given either way; a pixel from
    outside the image is that of the nearest edge, as in Keras.
    """
    n, _, height, width = images.shape
    draw = torch.rand((6, n), device=images.device)
    angle = (2 * draw[0] - 1) * (turn * math.pi / 180)
    down, across = (2 * draw[1] - 1) * shift * 2 / height, (2 * draw[2] - 1) * shift * 2 / width
    tall, wide = (1 + (2 * draw[i] - 1) * zoom for i in (3, 4))
    mirrored = torch.where(draw[5] < 0.5, -1.0, 1.0)
    cos, sin = torch.cos(angle), torch.sin(angle)
    rows = (
        torch.stack((mirrored * cos * wide, -sin * tall, across), dim=1),
        torch.stack((mirrored * sin * wide, cos * tall, down), dim=1),
    )
    grid = functional.affine_grid(torch.stack(rows, dim=1), list(images.shape), align_corners=False)
    return functional.grid_sample(
        images, grid, mode="bilinear", padding_mode="border", align_corners=False
    )
