# SPDX-License-Identifier: Apache-2.0
"""Networks for pictures at small widths: classifiers, segmentation, a detector, mixers. Each function gives a module."""
from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def conv_norm(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1,
              activation: type[nn.Module] | None = nn.ReLU) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
                              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*parts, *([activation()] if activation else []))


class Residual(nn.Module):
    """A block of ResNet, with a projection where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = conv_norm(inputs, outputs, stride=stride)
        self.second = conv_norm(outputs, outputs, activation=None)
        is_same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if is_same else conv_norm(inputs, outputs, 1, stride, activation=None)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(self.first(x)) + self.skip(x))


def resnet() -> nn.Module:
    stem = [conv_norm(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1)]
    blocks = [Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 16, 1), Residual(16, 24, 2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))


class Squeeze(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(width, width // 2, 1), nn.Conv2d(width // 2, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        pooled = functional.adaptive_avg_pool2d(x, 1)
        return x * functional.hardsigmoid(self.up(functional.relu(self.down(pooled))))


class Inverted(nn.Module):
    """A block of MobileNetV3 or EfficientNet."""

    def __init__(self, inputs: int, outputs: int, stride: int, activation: type[nn.Module], squeeze: bool) -> None:
        super().__init__()
        wide = inputs * 3
        parts: list[nn.Module] = [conv_norm(inputs, wide, 1, activation=activation),
                                  conv_norm(wide, wide, 3, stride, wide, activation=activation)]
        parts += [Squeeze(wide)] if squeeze else []
        self.body = nn.Sequential(*parts, conv_norm(wide, outputs, 1, activation=None))
        self.has_skip = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return x + y if self.has_skip else y


def mobilenet() -> nn.Module:
    blocks = [Inverted(8, 8, 1, nn.ReLU, False), Inverted(8, 12, 2, nn.Hardswish, True), Inverted(12, 12, 1, nn.Hardswish, True)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 24), nn.Hardswish(), nn.Linear(24, 10)]
    return nn.Sequential(conv_norm(3, 8, 3, 2, activation=nn.Hardswish), *blocks, *head)


def mobilenet_relu6() -> nn.Module:
    blocks = [Inverted(8, 8, 1, nn.ReLU6, False), Inverted(8, 12, 2, nn.ReLU6, False), Inverted(12, 12, 1, nn.ReLU6, False)]
    return nn.Sequential(conv_norm(3, 8, 3, 2, activation=nn.ReLU6), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(12, 10))


def efficientnet() -> nn.Module:
    blocks = [Inverted(8, 8, 1, nn.SiLU, True), Inverted(8, 12, 2, nn.SiLU, True), Inverted(12, 12, 1, nn.SiLU, True)]
    return nn.Sequential(conv_norm(3, 8, 3, 2, activation=nn.SiLU), *blocks, conv_norm(12, 24, 1, activation=nn.SiLU),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))


class Dense(nn.Module):
    """DenseNet: each layer reads all before it, normalization and ReLU come before the convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(8 + 4 * k), nn.ReLU(), nn.Conv2d(8 + 4 * k, 4, 3, padding=1))
                                    for k in range(4))
        self.transition = nn.Sequential(nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 12, 1), nn.AvgPool2d(2))
        self.head = nn.Linear(12, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        scores: Tensor = self.head(self.transition(x).mean((2, 3)))
        return scores


class Shuffle(nn.Module):
    """ShuffleNetV2: channels are split, joined and shuffled."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv_norm(3, 16, 3, 2)
        self.branches = nn.ModuleList(nn.Sequential(conv_norm(8, 8, 1), conv_norm(8, 8, 3, groups=8, activation=None), conv_norm(8, 8, 1))
                                      for _ in range(3))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(self.stem(x), 3, 2, 1)
        for branch in self.branches:
            kept, changed = x.chunk(2, 1)
            x = torch.cat([kept, branch(changed)], 1)
            batch, width, height, columns = x.shape
            x = x.view(batch, 2, width // 2, height, columns).transpose(1, 2).reshape(batch, width, height, columns)
        scores: Tensor = self.head(x.mean((2, 3)))
        return scores


class Inception(nn.Module):
    """Branches of other kernels, pools among them, joined by channels; local response normalization as in GoogLeNet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = conv_norm(3, 8, 3, 2), nn.LocalResponseNorm(3)
        self.one, self.three, self.five = conv_norm(8, 6, 1), conv_norm(8, 6, 3), conv_norm(8, 6, 5)
        self.pooled, self.tall, self.wide = conv_norm(8, 6, 1), nn.Conv2d(24, 8, (3, 1), padding=(1, 0)), nn.Conv2d(8, 8, (1, 3), padding=(0, 1))
        self.head = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.stem(x))
        pooled = functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        x = torch.cat([self.one(x), self.three(x), self.five(x), self.pooled(pooled)], 1)
        x = functional.relu(self.wide(functional.relu(self.tall(functional.max_pool2d(x, 2, ceil_mode=True)))))
        scores: Tensor = self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))
        return scores


class UNet(nn.Module):
    """Down and up with skips: one transposed convolution, one bilinear resize; GroupNorm."""

    def __init__(self) -> None:
        super().__init__()
        def block(inputs: int, outputs: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.SiLU())
        self.down = nn.ModuleList([block(3, 8), block(8, 12), block(12, 16)])
        self.up, self.last = nn.ConvTranspose2d(16, 12, 2, 2), nn.Conv2d(8, 2, 1)
        self.joined = nn.ModuleList([block(24, 12), block(20, 8)])

    def forward(self, x: Tensor) -> Tensor:
        first = self.down[0](x)
        second = self.down[1](functional.max_pool2d(first, 2))
        x = self.up(self.down[2](functional.max_pool2d(second, 2)))
        x = self.joined[0](torch.cat([x, second], 1))
        x = functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.last(self.joined[1](torch.cat([x, first], 1))))


class Detector(nn.Module):
    """A feature pyramid, heads shared by levels, boxes decoded from anchors, the best chosen by TopK."""

    def __init__(self) -> None:
        super().__init__()
        self.fine, self.middle, self.coarse = conv_norm(3, 8, 3, 2), conv_norm(8, 12, 3, 2), conv_norm(12, 16, 3, 2)
        self.lateral = nn.ModuleList([nn.Conv2d(12, 8, 1), nn.Conv2d(16, 8, 1)])
        self.tower = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.LeakyReLU(0.1))
        self.classes, self.boxes = nn.Conv2d(8, 3, 1), nn.Conv2d(8, 4, 1)

    def decode(self, x: Tensor, stride: int) -> tuple[Tensor, Tensor]:
        rows, columns = x.shape[2:]
        x = self.tower(x)
        scores = self.classes(x).sigmoid().flatten(2).transpose(1, 2)
        moved = self.boxes(x).flatten(2).transpose(1, 2)
        y, x_ = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        center = (torch.stack([x_, y], -1).reshape(1, -1, 2) + 0.5) * stride
        middle, size = center + torch.tanh(moved[..., :2]) * stride, torch.exp(0.5 * moved[..., 2:]) * stride
        return scores, torch.cat([middle - size / 2, middle + size / 2], -1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        middle = self.middle(self.fine(x))
        top = self.lateral[1](self.coarse(middle))
        merged = self.lateral[0](middle) + functional.interpolate(top, scale_factor=2.0, mode="nearest")
        levels = [self.decode(merged, 4), self.decode(top, 8)]
        scores, boxes = (torch.cat(parts, 1) for parts in zip(*levels))
        best = scores.max(-1).values.topk(6, 1)
        return scores, boxes, boxes.gather(1, best.indices[..., None].expand(-1, -1, 4))


class Mixer(nn.Module):
    """MLP-Mixer: products over patches and over channels in turns."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 8, 8)
        def mlp(width: int, wide: int) -> nn.Sequential:
            return nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(4))
        self.patches, self.channels = (nn.ModuleList(mlp(16, wide) for _ in range(2)) for wide in (24, 32))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).flatten(2).transpose(1, 2)
        for k in range(2):
            x = x + self.patches[k](self.norms[2 * k](x).transpose(1, 2)).transpose(1, 2)
            x = x + self.channels[k](self.norms[2 * k + 1](x))
        scores: Tensor = self.head(x.mean(1))
        return scores


class ConvNext(nn.Module):
    """Depthwise kernels of seven, LayerNorm over the last axis between two transposes, a learned scale on each branch."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 4, 4)
        self.depthwise = nn.ModuleList(nn.Conv2d(12, 12, 7, padding=3, groups=12) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(12, eps=1e-6) for _ in range(3))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 12)) for _ in range(2))
        self.scales = nn.Parameter(torch.ones(2, 12))
        self.head = nn.Linear(12, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for k in range(2):
            y = self.norms[k](self.depthwise[k](x).permute(0, 2, 3, 1))
            x = x + (self.scales[k] * self.mlps[k](y)).permute(0, 3, 1, 2)
        scores: Tensor = self.head(self.norms[2](x.mean((2, 3))))
        return scores


class SuperResolution(nn.Module):
    """ESPCN with a global skip: PReLU, then depth to space."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 5, padding=2), nn.PReLU(12), nn.Conv2d(12, 12, 3, padding=1), nn.PReLU(12),
                                  nn.Conv2d(12, 12, 3, padding=1))
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x: Tensor) -> Tensor:
        grown = functional.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False)
        return (grown + torch.tanh(self.shuffle(self.body(x)))).clamp(-1.5, 1.5)
