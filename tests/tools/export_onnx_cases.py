#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the backend test cases of the installed onnx package as folders that `parallax test` reads.

    export_onnx_cases.py -o onnx_cases && parallax test onnx_cases --with reference

node/ and simple/ hold the cases that the package makes; real/ gets its light models (their weights are constants of a
shape) with the inputs and outputs that onnx's test runner gives them.
"""
import argparse
import collections
import pathlib
import shutil

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.model import collect_testcases
from onnx.backend.test.loader import load_model_tests


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", required=True, type=pathlib.Path, help="folder to write; its cases are replaced")
    return parser.parse_args()


def to_message(value, value_info):
    """The protobuf message of a value, by the type its model declares."""
    if isinstance(value, onnx.TensorProto):
        return value
    writers = {
        "map_type": numpy_helper.from_dict,
        "sequence_type": numpy_helper.from_list,
        "optional_type": numpy_helper.from_optional,
        "tensor_type": numpy_helper.from_array,
    }
    return writers[value_info.type.WhichOneof("value")](value, value_info.name)


def write_case(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for index, (value, info) in enumerate(zip(values, infos)):
                (data / f"{kind}_{index}.pb").write_bytes(to_message(value, info).SerializeToString())


def ramp(value_info):
    """The input of onnx's runner for light models: 0, 1/n, 2/n, ... in the declared shape, 1 for a named dimension."""
    tensor_type = value_info.type.tensor_type
    if tensor_type.elem_type != onnx.TensorProto.FLOAT:
        raise SystemExit(f"input '{value_info.name}' of a light model is not float32")
    shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def write_light_case(case, folder):
    source = pathlib.Path(onnx.__file__).parent.parent / case.url
    if not source.is_file():  # a model to be downloaded
        return
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    shutil.copy(source, folder / "model.onnx")
    model = onnx.load(source)
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    for index, value in enumerate(inputs):
        (data / f"input_{index}.pb").write_bytes(numpy_helper.from_array(ramp(value), value.name).SerializeToString())
    for index in range(len(model.graph.output)):
        shutil.copy(source.with_name(f"{source.stem}_output_{index}.pb"), data / f"output_{index}.pb")


def main():
    options = parse()
    counts = collections.Counter()
    for case in load_model_tests(kind="node") + collect_testcases():
        folder = options.out / case.kind / case.name
        if folder.exists():
            shutil.rmtree(folder)
        if case.model is not None:
            write_case(case, folder)
        else:
            write_light_case(case, folder)
        counts[case.kind] += folder.is_dir()
    for kind, count in sorted(counts.items()):
        print(f"{kind}: {count} cases")


if __name__ == "__main__":
    main()
