#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports torchvision's image classifiers with random weights, each with an input and what PyTorch computes from it.

    export_vision.py --out FOLDER [--only resnet50] [--exporter torchscript] [--size 224] [--batch 1]

Needs the packages of requirements.txt next to this file; nothing else is downloaded. Writes FOLDER/NAME/model.onnx and test_data_set_0,
as ONNX's backend tests and `parallax run` read them. Weights are those of torchvision's own initialization, drawn from a fixed seed;
means, variances, scales and shifts of batch norms are random too, so that folding them into convolutions has something to get wrong, and
so is what torchvision leaves at zero (ViT's head and class token), since outputs of zeros prove nothing.
"""
import argparse
import pathlib

import numpy as np
import onnx
import torch
import torchvision

MODELS = {
    "resnet50": torchvision.models.resnet50,
    "mobilenet_v3": torchvision.models.mobilenet_v3_large,
    "vit_b_16": torchvision.models.vit_b_16,
}


def with_nothing_trivial(model):
    for parameter in model.parameters():
        if parameter.count_nonzero() == 0:
            torch.nn.init.normal_(parameter, std=0.02)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, std=0.1)
            torch.nn.init.uniform_(module.running_var, 0.7, 1.4)
            torch.nn.init.uniform_(module.weight, 0.7, 1.2)
            torch.nn.init.normal_(module.bias, std=0.1)
    return model.eval()


def write_tensor(path, array, name):
    path.write_bytes(onnx.numpy_helper.from_array(array, name).SerializeToString())


def export(name, arguments):
    torch.manual_seed(0)
    model = with_nothing_trivial(MODELS[name](weights=None))
    image = torch.randn(arguments.batch, 3, arguments.size, arguments.size)
    folder = arguments.out / name
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        expected = model(image)
        torch.onnx.export(model, (image,), str(folder / "model.onnx"), input_names=["image"], output_names=["logits"],
                          opset_version=18, dynamo=arguments.exporter == "dynamo", external_data=False)
    write_tensor(data / "input_0.pb", image.numpy(), "image")
    write_tensor(data / "output_0.pb", np.ascontiguousarray(expected.numpy()), "logits")
    nodes = len(onnx.load(folder / "model.onnx").graph.node)
    print(f"{folder / 'model.onnx'}: {nodes} nodes, {(folder / 'model.onnx').stat().st_size / 1e6:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=sorted(MODELS))
    parser.add_argument("--exporter", choices=["dynamo", "torchscript"], default="dynamo")
    parser.add_argument("--size", type=int, default=224, help="of the image; vit_b_16 takes 224 alone")
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()
    for name in MODELS:
        if arguments.only in (None, name):
            export(name, arguments)


if __name__ == "__main__":
    main()
