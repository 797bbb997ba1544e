#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the samples llama_layer/ (one decoder layer of a Llama with an attention mask) and cnn/ (a small image classifier)
with PyTorch's dynamo exporter, metadata kept: the scopes that Parallax shows come from it.

    python exported.py
    python exported.py --hidden 256 --layers 4 --out larger
"""
import tempfile
import pathlib

import numpy as np
import onnx
import torch
import transformers

from common import generator, normal, options, shorten_traces, write_model

KEPT_FRAMES = 2


class LlamaLayer(torch.nn.Module):
    def __init__(self, hidden, layers, vocabulary):
        super().__init__()
        config = transformers.LlamaConfig(
            hidden_size=hidden, intermediate_size=3 * hidden // 2, num_hidden_layers=layers, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=vocabulary, max_position_embeddings=128, use_cache=False,
        )
        config._attn_implementation = "eager"
        self.model = transformers.LlamaModel(config)

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]


class SqueezeExcite(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.reduce = torch.nn.Conv2d(channels, channels // 4, 1)
        self.expand = torch.nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        scale = self.reduce(torch.nn.functional.adaptive_avg_pool2d(x, 1))
        return x * torch.sigmoid(self.expand(torch.relu(scale)))


class Block(torch.nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.depthwise = torch.nn.Conv2d(into, into, 3, stride, padding=1, groups=into, bias=False)
        self.norm = torch.nn.BatchNorm2d(into)
        self.squeeze = SqueezeExcite(into)
        self.pointwise = torch.nn.Conv2d(into, out, 1)
        self.residual = stride == 1 and into == out

    def forward(self, x):
        y = self.pointwise(self.squeeze(torch.nn.functional.relu6(self.norm(self.depthwise(x)))))
        return x + y if self.residual else y


class Classifier(torch.nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, width, 3, 2, padding=1)
        self.pool = torch.nn.MaxPool2d(3, 2, padding=1)
        self.blocks = torch.nn.Sequential(Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1))
        self.head = torch.nn.Linear(2 * width, classes)

    def forward(self, image):
        x = self.blocks(self.pool(torch.nn.functional.leaky_relu(self.stem(image), 0.1)))
        return torch.log_softmax(self.head(x.mean((2, 3))), dim=-1)


def fill(module):
    """Weights from numpy, one stream a name: they do not depend on torch's generator, and keep activations of order one."""
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if not tensor.is_floating_point() or name.endswith("inv_freq"):
                continue
            if name.endswith("running_var"):
                values = generator(name).uniform(0.3, 1.5, tuple(tensor.shape))
            elif tensor.ndim == 1:
                values = normal(name, tuple(tensor.shape), 0.1) + (1.0 if name.endswith("weight") else 0.0)
            elif "embed" in name:
                values = normal(name, tuple(tensor.shape))
            else:
                values = normal(name, tuple(tensor.shape), tensor[0].numel() ** -0.5)
            tensor.copy_(torch.from_numpy(np.asarray(values, np.float32)))
    return module.eval()


def export(module, folder, arguments, output, dynamic_shapes):
    with torch.no_grad():
        expected = {output: module(**arguments).numpy()}
    program = torch.onnx.export(
        module, kwargs=arguments, input_names=list(arguments), output_names=[output], dynamic_shapes=dynamic_shapes, dynamo=True,
        verbose=False,
    )
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "model.onnx"
        program.save(str(path))
        model = onnx.load(str(path))
    shorten_traces(model.graph.node, KEPT_FRAMES)
    write_model(model, folder, {k: v.numpy() for k, v in arguments.items()}, expected=expected)


def main():
    choice = options(__doc__, hidden=48, layers=1, vocabulary=96, width=16, image=32)
    random = generator("ids")
    # Row 1 is padded on its right: each query sees a token, so no row of the attention is masked entirely.
    mask = np.ones((2, 7), np.int64)
    mask[1, 5:] = 0
    ids = torch.from_numpy(random.integers(3, choice.vocabulary, (2, 7)))
    axes = {0: "batch", 1: "sequence"}
    export(
        fill(LlamaLayer(choice.hidden, choice.layers, choice.vocabulary)), choice.out / "llama_layer",
        {"input_ids": ids, "attention_mask": torch.from_numpy(mask)}, "last_hidden_state",
        {"input_ids": axes, "attention_mask": axes},
    )
    image = torch.from_numpy(normal("image", (2, 3, choice.image, choice.image)))
    export(fill(Classifier(choice.width, 10)), choice.out / "cnn", {"image": image}, "log_probabilities", {"image": {0: "batch"}})


if __name__ == "__main__":
    main()
