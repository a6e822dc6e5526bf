"""The networks of the experiments, from random weights: five of classes, one of outlines.

This module needs PyTorch alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["VGG", "DenseNet", "ResNet8", "ResNet9", "ResNet18", "UNet"]


class ResNet8(nn.Module):
    """Three residual stages, each of half the resolution: 0.3 million weights at width 32.

    Of He et al. 2016, section 4.2, with one block a stage and a resolution that is halved once
    more: logits (N, classes) of images (N, 1, H, W) whose values are 0 … 1.

    >>> ResNet8(classes=2, width=4)(torch.zeros(1, 1, 28, 28)).shape
    torch.Size([1, 2])
    """

    def __init__(self, classes: int, width: int = 32) -> None:
        super().__init__()
        self.stem = _convolution(1, width)
        self.stages = nn.Sequential(
            _Halving(width, width), _Halving(width, 2 * width), _Halving(2 * width, 4 * width)
        )
        self.last = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits."""
        features: Tensor = self.stages(self.stem(2 * images - 1)).mean(dim=(2, 3))
        logits: Tensor = self.last(features)
        return logits


class _Halving(nn.Module):
    """Two convolutions, of half the resolution unless told otherwise, added to what they are of."""

    def __init__(self, before: int, after: int, stride: int = 2) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_convolution(before, after, stride=stride),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(before, after, 1, stride=stride)

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.shortcut(images) + self.body(images))


class ResNet18(nn.Module):
    """The network of He et al. 2016, Table 1: logits (N, classes) of images (N, channels, H, W).

    Images of 64 pixels or more (`large`) are made smaller first, as theirs are; others are not, as
    is usual for CIFAR-10. In training on a GPU it computes in bfloat16, in eval mode in float32.

    >>> ResNet18(channels=3, classes=10, width=2)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(
        self, channels: int, classes: int, width: int = 64, *, large: bool = False
    ) -> None:
        super().__init__()
        first: list[nn.Module] = [_convolution(channels, width)]
        if large:
            first = [
                nn.Conv2d(channels, width, 7, 2, padding=3, bias=False),
                *(nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)),
            ]
        stages = [_Halving(width, width, stride=1), _Halving(width, width, stride=1)]
        for i in range(3):
            before = width * 2**i
            stages += [_Halving(before, 2 * before), _Halving(2 * before, 2 * before, stride=1)]
        self.body = nn.Sequential(*first, *stages)
        self.last = nn.Linear(8 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits."""
        quick = self.training and images.is_cuda
        with torch.autocast(images.device.type, dtype=torch.bfloat16, enabled=quick):
            given = (2 * images - 1).contiguous(memory_format=torch.channels_last)
            logits: Tensor = self.last(self.body(given).mean(dim=(2, 3)))
        return logits.float()


class ResNet9(nn.Module):
    """Eight convolutions, four of them in two residual blocks, for images in any colours.

    Quick to train on a GPU: convolutions whose images are halved by pooling, as in the shortest
    entries of DAWNBench. In training on a GPU, and within `torch.autocast`, it is in bfloat16;
    what it says in eval mode otherwise is in float32, because scores of eight bits would tie.

    >>> ResNet9(channels=3, outputs=10, width=2)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(self, channels: int, outputs: int, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _convolution(channels, width),
            _convolution(width, 2 * width, pool=True),
            _Residual(2 * width),
            _convolution(2 * width, 4 * width, pool=True),
            _convolution(4 * width, 8 * width, pool=True),
            _Residual(8 * width),
        )
        self.head = nn.Linear(8 * width, outputs)

    def forward(self, images: Tensor) -> Tensor:
        """Return (N, outputs) logits."""
        with _quick(self, images):
            features = self.body(images.contiguous(memory_format=torch.channels_last))
            scores: Tensor = self.head(features.amax(dim=(2, 3)))
        return scores.float()


class VGG(nn.Module):
    """Plain convolutions, two at each resolution, as in Simonyan and Zisserman 2015.

    Four resolutions of 1, 2, 4 and 6 times the width, each halved by pooling, with batch norm:
    0.8 million weights at width 32, about the size of CCC section 4.1. In training on a GPU, and
    within `torch.autocast`, it computes in bfloat16.

    >>> VGG(channels=3, outputs=10, width=2)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(self, channels: int, outputs: int, width: int = 32) -> None:
        super().__init__()
        layers, before = [], channels
        for times in (1, 2, 4, 6):
            after = times * width
            layers += [_convolution(before, after), _convolution(after, after, pool=True)]
            before = after
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(before, outputs)

    def forward(self, images: Tensor) -> Tensor:
        """Return (N, outputs) logits."""
        with _quick(self, images):
            features = self.body(images.contiguous(memory_format=torch.channels_last))
            scores: Tensor = self.head(features.mean(dim=(2, 3)))
        return scores.float()


class DenseNet(nn.Module):
    """Three dense blocks, of Huang et al. 2017, section 3: each layer sees all before it.

    Every layer (batch norm, ReLU, convolution) adds `growth` channels; between blocks the channels
    and the resolution are halved. CCC section 4.1 has 16 layers a block and 12 channels a layer.
    With `halved`, the first convolution halves the resolution too, which makes a training step
    four times as quick. Computes in bfloat16 where `VGG` does.

    >>> DenseNet(channels=3, outputs=10, layers=2, growth=4)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(
        self,
        channels: int,
        outputs: int,
        layers: int = 16,
        growth: int = 12,
        *,
        halved: bool = False,
    ) -> None:
        super().__init__()
        width = 2 * growth
        stride = 2 if halved else 1
        body: list[nn.Module] = [nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)]
        for block in range(3):
            if block:
                norm, changed = nn.BatchNorm2d(width), nn.Conv2d(width, width // 2, 1, bias=False)
                body += [norm, nn.ReLU(), changed, nn.AvgPool2d(2)]
                width //= 2
            for _ in range(layers):
                body.append(_Dense(width, growth))
                width += growth
        self.body = nn.Sequential(*body, nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width, outputs)

    def forward(self, images: Tensor) -> Tensor:
        """Return (N, outputs) logits."""
        with _quick(self, images):
            features = self.body(images.contiguous(memory_format=torch.channels_last))
            scores: Tensor = self.head(features.mean(dim=(2, 3)))
        return scores.float()


class _Dense(nn.Module):
    """A convolution whose channels are put beside those that it is of."""

    def __init__(self, before: int, growth: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(before)
        self.convolution = nn.Conv2d(before, growth, 3, padding=1, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        more = self.convolution(torch.relu_(self.norm(images)))
        return torch.cat((images.to(more.dtype), more), dim=1)


def _quick(network: nn.Module, images: Tensor) -> torch.autocast:
    """Return where to compute: in bfloat16 when training on a GPU, or when the caller does."""
    kind = images.device.type
    wanted = (network.training and images.is_cuda) or torch.is_autocast_enabled(kind)
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=wanted)


class _Residual(nn.Module):
    """Two convolutions, added to what they are given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.change = nn.Sequential(_convolution(width, width), _convolution(width, width))

    def forward(self, images: Tensor) -> Tensor:
        changed: Tensor = images + self.change(images)
        return changed


def _convolution(before: int, after: int, *, stride: int = 1, pool: bool = False) -> nn.Sequential:
    """Return a convolution with what follows it: batch norm, ReLU and, if wanted, pooling."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(),
        *([nn.MaxPool2d(2)] if pool else []),
    )


class UNet(nn.Module):
    """A U-Net of four levels with group normalisation: logits (N, 2, H, W) of images (N, 1, H, W).

    H and W must be multiples of 8. `foreground` is about the probability that the untrained network
    gives every pixel. Where few pixels are foreground, a network that begins with a half spends its
    first epochs on the background, and may never see the rest (Lin et al. 2017, section 4.1).

    >>> UNet(channels=8)(torch.zeros(1, 1, 16, 16)).shape
    torch.Size([1, 2, 16, 16])
    """

    def __init__(self, channels: int = 16, foreground: float = 0.5, levels: int = 4) -> None:
        super().__init__()
        widths = [channels * 2**level for level in range(levels)]
        self.down = nn.ModuleList(
            _two_convolutions(before, after)
            for before, after in zip([1, *widths], widths, strict=False)
        )
        self.up = nn.ModuleList(
            _two_convolutions(width + 2 * width, width) for width in reversed(widths[:-1])
        )
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.Upsample(scale_factor=2, mode="nearest")
        self.head = nn.Conv2d(channels, 2, 1)
        odds = torch.tensor([1 - foreground, foreground]).log()
        self.head.bias = nn.Parameter(odds - odds.mean())

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of background and foreground."""
        found = self.down[0](images)
        skipped = []
        for block in list(self.down)[1:]:
            skipped.append(found)
            found = block(self.pool(found))
        for block in self.up:
            found = block(torch.cat((self.grow(found), skipped.pop()), dim=1))
        logits: Tensor = self.head(found)
        return logits


def _two_convolutions(before: int, after: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (before, after):
        layers += [
            nn.Conv2d(width, after, 3, padding=1, bias=False),
            nn.GroupNorm(8, after),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)
