# SPDX-License-Identifier: Apache-2.0
"""The architectures by name, and their exports: ONNX models with inputs, cached in a folder by seed, name and variant."""
from __future__ import annotations

import contextlib
import io
import pathlib
import warnings
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from tools import language, sound, vision

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
PICTURE: dict[str, tuple[int, ...]] = {"picture": (1, 3, 32, 32)}


class Architecture(NamedTuple):
    """How a module is made, its inputs' shapes, and the kind that onnxruntime's transformer optimizer knows it by."""

    build: Callable[[], nn.Module]
    inputs: dict[str, tuple[int, ...]]
    optimizer: str = ""


ARCHITECTURES: dict[str, Architecture] = {
    **{name: Architecture(getattr(vision, name), PICTURE) for name in ("resnet", "mobilenet", "mobilenet_relu6", "efficientnet")},
    "densenet": Architecture(vision.Dense, PICTURE),
    "shufflenet": Architecture(vision.Shuffle, PICTURE),
    "inception": Architecture(vision.Inception, PICTURE),
    "unet": Architecture(vision.UNet, PICTURE),
    "detector": Architecture(vision.Detector, PICTURE),
    "mixer": Architecture(vision.Mixer, PICTURE),
    "convnext": Architecture(vision.ConvNext, PICTURE),
    "superresolution": Architecture(vision.SuperResolution, {"picture": (1, 3, 16, 16)}),
    "lstm": Architecture(sound.Tagger, {"ids": (2, 9)}),
    "gru": Architecture(sound.Recurrent, {"frames": (2, 7, 8)}),
    "crnn": Architecture(sound.Convolved, {"spectrogram": (1, 1, 16, 20)}),
    "tcn": Architecture(sound.Causal, {"series": (1, 4, 40)}),
    "wavenet": Architecture(sound.Wave, {"wave": (1, 1, 48)}),
    "tasnet": Architecture(sound.Separator, {"wave": (1, 1, 128)}),
    "conformer": Architecture(sound.Conformer, {"frames": (1, 14, 10)}, "bert"),
    **{name: Architecture(lambda name=name: language.build(name), row.inputs, row.optimizer)  # type: ignore[misc]
       for name, row in language.TABLE.items()},
}
# The variants of an export: by which exporter, for which opset, with free dimensions, in which type.
VARIANTS = {"dynamo": (True, 18), "script": (False, 17), "script_old": (False, 13), "dynamo_new": (True, 21), "free": (True, 18), "script_free": (False, 17),
            "autocast": (True, 18), "half": (True, 18)}


def randomize(module: nn.Module, generator: torch.Generator) -> None:
    """Weights that keep the size of what passes through, scales near one, biases that show, statistics that are not trivial."""
    with torch.no_grad():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            if not value.is_floating_point() or "inv_freq" in name:
                continue
            noise = torch.randn(value.shape, generator=generator)
            if name.endswith("running_var"):
                value.copy_(0.5 + torch.rand(value.shape, generator=generator))
            elif value.dim() >= 2:
                is_table = "embed" in name or "words" in name or "shared" in name
                value.copy_(noise * (0.5 if is_table else 1.0 / max(1, value[0].numel()) ** 0.5))
            elif "bias" in name or name.endswith("running_mean"):
                value.copy_(0.2 * noise)
            else:
                value.copy_(1 + 0.2 * noise)


def number_of(*parts: object) -> int:
    """A number that depends on the parts alone, in every process the same."""
    return zlib.crc32("/".join(map(str, parts)).encode())


def save_arrays(path: pathlib.Path, arrays: Arrays) -> None:
    """Writes an .npz file."""
    named: dict[str, Any] = dict(arrays)
    np.savez(path, **named)


class Export(NamedTuple):
    """An exported model and its inputs."""

    model: onnx.ModelProto
    inputs: Arrays


def module_and_inputs(name: str, seed: int) -> tuple[nn.Module, dict[str, Tensor]]:
    torch.manual_seed(number_of(seed, name))
    generator = torch.Generator().manual_seed(number_of(seed, name, "weights"))
    module = ARCHITECTURES[name].build().eval()
    randomize(module, generator)
    return module, {key: language.value_of(key, shape, generator) for key, shape in ARCHITECTURES[name].inputs.items()}


def export_now(name: str, seed: int, variant: str, path: pathlib.Path) -> Export:
    module, inputs = module_and_inputs(name, seed)
    is_dynamo, opset = VARIANTS[variant]
    if variant == "half":
        module = module.half()
        inputs = {key: value.half() if value.is_floating_point() else value for key, value in inputs.items()}
    args, names = tuple(inputs.values()), list(inputs)
    options: dict[str, Any] = {"input_names": names, "opset_version": opset, "dynamo": is_dynamo}
    if variant == "free":
        free = [{0: torch.export.Dim.AUTO, value.dim() - 1: torch.export.Dim.AUTO} for value in args]
        options["dynamic_shapes"] = [tuple(free)] if name in language.TABLE else free
    elif variant == "script_free":
        options["dynamic_axes"] = {key: {0: "batch"} for key in names}
    cast = torch.autocast("cpu", torch.bfloat16) if variant == "autocast" else contextlib.nullcontext()
    with cast, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, args, str(path), external_data=False, **options)
    return Export(onnx.load(str(path)), {key: value.numpy() for key, value in inputs.items()})


class Exports:
    """The exports of one seed; each is made once and kept in a folder."""

    def __init__(self, folder: pathlib.Path, seed: int) -> None:
        self.folder, self.seed = folder / f"exports-{seed}", seed
        self.folder.mkdir(parents=True, exist_ok=True)
        self.missing: dict[tuple[str, str], str] = {}

    def get(self, name: str, variant: str = "dynamo") -> Export | None:
        """None where the exporter does not take the module; the reason is kept in `missing`."""
        path, data = self.folder / f"{name}-{variant}.onnx", self.folder / f"{name}-{variant}.npz"
        failed = self.folder / f"{name}-{variant}.failed"
        if failed.exists():
            self.missing[name, variant] = failed.read_text()
            return None
        if not data.exists():
            try:
                made = export_now(name, self.seed, variant, path)
            except Exception as error:  # whatever an exporter raises: the variant is not used
                self.missing[name, variant] = f"{type(error).__name__}: {str(error)[:300]}"
                failed.write_text(self.missing[name, variant])
                return None
            save_arrays(data, made.inputs)
        return Export(onnx.load(str(path)), dict(np.load(data)))
