# SPDX-License-Identifier: Apache-2.0
"""Networks for sequences and sound at small widths: recurrent, causal, separation, an autoencoder of waves."""
from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Tagger(nn.Module):
    """Embedding, LSTM in both directions, scores at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm, self.head = nn.Embedding(64, 12), nn.LSTM(12, 10, batch_first=True, bidirectional=True), nn.Linear(20, 6)

    def forward(self, ids: Tensor) -> Tensor:
        return torch.log_softmax(self.head(torch.tanh(self.lstm(self.words(ids))[0])), -1)


class Recurrent(nn.Module):
    """Two layers of GRU over frames, the last state and the mean joined."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(8, 12, num_layers=2, batch_first=True), nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 5))

    def forward(self, frames: Tensor) -> Tensor:
        steps, state = self.gru(frames)
        scores: Tensor = self.head(torch.cat([state[-1], steps.mean(1)], 1))
        return scores


class Convolved(nn.Module):
    """CRNN of speech recognition: convolutions over a spectrogram, then GRU, then scores for CTC."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3, (2, 1), 1), nn.BatchNorm2d(6), nn.Hardtanh(0, 20), nn.Conv2d(6, 8, 3, (2, 1), 1),
                                  nn.BatchNorm2d(8), nn.Hardtanh(0, 20))
        self.gru, self.head = nn.GRU(32, 12, batch_first=True, bidirectional=True), nn.Linear(24, 9)

    def forward(self, spectrogram: Tensor) -> Tensor:
        x = self.body(spectrogram)
        x = x.permute(0, 3, 1, 2).flatten(2)
        return torch.log_softmax(self.head(self.gru(x)[0]), -1)


class Causal(nn.Module):
    """TCN: dilated convolutions that see the past only, residual."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv1d(4, 12, 1)
        self.layers = nn.ModuleList(nn.Conv1d(12, 12, 3, dilation=2 ** k) for k in range(4))
        self.head = nn.Conv1d(12, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for k, layer in enumerate(self.layers):
            x = functional.relu(x + functional.elu(layer(functional.pad(x, (2 ** (k + 1), 0)))))
        scores: Tensor = self.head(x)
        return scores


class Wave(nn.Module):
    """WaveNet: gates by tanh and sigmoid, skips summed."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv1d(1, 8, 1)
        self.filters, self.gates = (nn.ModuleList(nn.Conv1d(8, 8, 2, padding=2 ** k, dilation=2 ** k) for k in range(3)) for _ in range(2))
        self.mixed, self.skips = (nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(3)) for _ in range(2))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(8, 8, 1), nn.ReLU(), nn.Conv1d(8, 6, 1))

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.stem(x), torch.zeros(())
        length = x.shape[-1]
        for k in range(3):
            y = torch.tanh(self.filters[k](x)[..., :length]) * torch.sigmoid(self.gates[k](x)[..., :length])
            total, x = total + self.skips[k](y), x + self.mixed[k](y)
        scores: Tensor = self.head(total)
        return scores


class Separator(nn.Module):
    """Conv-TasNet: an encoder of waves, masks for two speakers, a decoder by transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, 12, 8, 4, bias=False), nn.ConvTranspose1d(12, 1, 8, 4, bias=False)
        self.norm, self.squeeze, self.masks = nn.GroupNorm(1, 12, eps=1e-8), nn.Conv1d(12, 8, 1), nn.Conv1d(8, 24, 1)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv1d(8, 16, 1), nn.PReLU(), nn.GroupNorm(1, 16), nn.Conv1d(16, 16, 3, padding=2 ** k, dilation=2 ** k, groups=16),
                                                  nn.PReLU(), nn.Conv1d(16, 8, 1)) for k in range(2))

    def forward(self, wave: Tensor) -> Tensor:
        mixture = functional.relu(self.encoder(wave))
        x = self.squeeze(self.norm(mixture))
        for block in self.blocks:
            x = x + block(x)
        masks = torch.sigmoid(self.masks(x)).unflatten(1, (2, 12))
        sources: Tensor = self.decoder((masks * mixture.unsqueeze(1)).flatten(0, 1))
        return sources


class Conformer(nn.Module):
    """A block of a Conformer encoder: half steps of feed-forward, attention, gated depthwise convolution."""

    def __init__(self) -> None:
        super().__init__()
        width = 16
        self.stem = nn.Linear(10, width)
        self.feed = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, width)) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate, self.deep = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 5, padding=2, groups=width)
        self.norm, self.point = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.stem(frames)
        x = x + 0.5 * self.feed[0](x)
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // 2) ** 0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        y = functional.glu(self.gate(self.norms[1](x).transpose(1, 2)), 1)
        x = x + self.point(functional.silu(self.norm(self.deep(y)))).transpose(1, 2)
        x = x + 0.5 * self.feed[1](x)
        encoded: Tensor = self.norms[2](x)
        return encoded
