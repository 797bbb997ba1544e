#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes convolutional networks of torchvision as ONNX models with random weights, for ort_bench.py --models.

Usage: torchvision_networks.py FOLDER [NAME...]

Needs torch, torchvision and onnxscript. Running statistics of normalizations are random, too, so that no activation dies
out. A model that is in the folder already is left as it is.
"""

import pathlib
import sys

import torch
from torchvision import models

SIZE = 224  # pixels, where a network asks for no other
NETWORKS = {
    "alexnet": SIZE, "convnext_tiny": SIZE, "deeplabv3_mobilenet_v3_large": SIZE, "densenet121": SIZE,
    "efficientnet_b0": SIZE, "efficientnet_v2_s": SIZE, "fcn_resnet50": SIZE, "googlenet": SIZE, "inception_v3": 299,
    "lraspp_mobilenet_v3_large": SIZE, "mnasnet1_0": SIZE, "mobilenet_v2": SIZE, "mobilenet_v3_large": SIZE,
    "mobilenet_v3_small": SIZE, "regnet_x_800mf": SIZE, "regnet_y_400mf": SIZE, "resnet18": SIZE, "resnet50": SIZE,
    "resnext50_32x4d": SIZE, "shufflenet_v2_x1_0": SIZE, "squeezenet1_1": SIZE, "vgg11_bn": SIZE,
    "wide_resnet50_2": SIZE,
}
SEGMENTATION = ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large")


class Scores(torch.nn.Module):
    """A segmentation network, of whose outputs only the scores [N, classes, H, W] are returned."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.network(x)["out"]
        return scores


def network_named(name: str) -> torch.nn.Module:
    """The network, ready for inference. Errors: KeyError for a name that NETWORKS does not have."""
    if name not in NETWORKS:
        raise KeyError(name)
    options: dict[str, object] = {"weights": None}
    if name in SEGMENTATION:
        options["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        options |= {"init_weights": False, "aux_logits": False}
    torch.manual_seed(0)
    network = models.get_model(name, **options).eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return Scores(network).eval() if name in SEGMENTATION else network


def main() -> None:
    """Writes FOLDER/NAME.onnx for each name."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        path = folder / f"{name}.onnx"
        if path.exists():
            continue
        image = torch.randn(1, 3, NETWORKS[name], NETWORKS[name])
        torch.onnx.export(network_named(name), (image,), str(path), dynamo=True, external_data=False, verbose=False)
        print(path, flush=True)


if __name__ == "__main__":
    main()
