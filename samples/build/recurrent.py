#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the sample recurrent/: a bidirectional LSTM with sequence lengths, initial states and peepholes, a GRU and an RNN on
top of it, written node by node; and with --exported 1 a tagger around torch.nn.LSTM through PyTorch's exporter.

    python recurrent.py
    python recurrent.py --hidden 256 --time 64 --exported 1 --out larger
"""
import numpy as np
from onnx import TensorProto, helper

from common import GraphBuilder, normal, options, write_model

FLOAT = TensorProto.FLOAT
CELL = {"LSTM": 4, "GRU": 3, "RNN": 1}  # gates of each cell


def cell(net, op, name, x, into, hidden, directions, lengths, states=(), peepholes=(), outputs=None, **attributes):
    gates = CELL[op]
    weights = [
        net.weight(f"{name}.W", normal(f"{name}.W", (directions, gates * hidden, into), into**-0.5)),
        net.weight(f"{name}.R", normal(f"{name}.R", (directions, gates * hidden, hidden), hidden**-0.5)),
        net.weight(f"{name}.B", normal(f"{name}.B", (directions, 2 * gates * hidden), 0.2)),
    ]
    extra = [net.weight(f"{name}.P", normal(f"{name}.P", (directions, 3 * hidden), 0.3))] if peepholes else []
    inputs = [x, *weights, lengths, *states, *extra]
    return net.node(op, inputs, name, outputs=outputs or [f"{name}.Y"], hidden_size=hidden, **attributes)


def flatten_directions(net, y, name):
    """[time, directions, batch, hidden] -> [time, batch, directions * hidden]"""
    y = net.node("Transpose", [y], f"{name}.transpose", perm=[0, 2, 1, 3])
    return net.node("Reshape", [y, net.weight(f"{name}.shape", np.array([0, 0, -1], np.int64))], f"{name}.reshape")


def stack(features, hidden, classes):
    net = GraphBuilder()
    y = cell(net, "LSTM", "lstm", "frames", features, hidden, 2, "lengths", ["initial_h", "initial_c"], peepholes=True,
             outputs=["lstm.Y", "lstm.Y_h", "last_cell"], direction="bidirectional")
    y = flatten_directions(net, y, "lstm")
    y = cell(net, "GRU", "gru", y, 2 * hidden, hidden, 1, "lengths", direction="reverse", linear_before_reset=1)
    y = flatten_directions(net, y, "gru")
    y = cell(net, "RNN", "rnn", y, hidden, hidden, 1, "lengths", outputs=["rnn.Y", "last_hidden"], activations=["Relu"], clip=3.0)
    y = net.node("Squeeze", [y, net.weight("direction_axis", np.array([1], np.int64))], "drop_direction")
    y = net.node("MatMul", [y, net.weight("head.weight", normal("head.weight", (hidden, classes), hidden**-0.5))], "head")
    net.node("LogSoftmax", [y], "log_softmax", outputs=["scores"], axis=-1)
    state = [2, "batch", hidden]
    inputs = [
        helper.make_tensor_value_info("frames", FLOAT, ["time", "batch", features]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"]),
        helper.make_tensor_value_info("initial_h", FLOAT, state),
        helper.make_tensor_value_info("initial_c", FLOAT, state),
    ]
    outputs = [
        helper.make_tensor_value_info("scores", FLOAT, ["time", "batch", classes]),
        helper.make_tensor_value_info("last_cell", FLOAT, state),
        helper.make_tensor_value_info("last_hidden", FLOAT, [1, "batch", hidden]),
    ]
    return net.model("recurrent", inputs, outputs, opset=14, ir_version=7)


def main():
    choice = options(__doc__, features=10, hidden=12, classes=7, time=6, batch=3, exported=0)
    lengths = np.linspace(choice.time, 1, choice.batch).round().astype(np.int32)
    state = (2, choice.batch, choice.hidden)
    feeds = {
        "frames": normal("frames", (choice.time, choice.batch, choice.features)), "lengths": lengths,
        "initial_h": normal("initial_h", state, 0.5), "initial_c": normal("initial_c", state, 0.5),
    }
    write_model(stack(choice.features, choice.hidden, choice.classes), choice.out / "recurrent", feeds)
    if choice.exported:
        export_tagger(choice)


def export_tagger(choice):
    import torch

    import exported

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(choice.features, choice.hidden, num_layers=2, bidirectional=True, batch_first=True)
            self.gru = torch.nn.GRU(2 * choice.hidden, choice.hidden, batch_first=True)
            self.head = torch.nn.Linear(choice.hidden, choice.classes)

        def forward(self, frames):
            return self.head(self.gru(self.lstm(frames)[0])[0])

    frames = torch.from_numpy(normal("tagger.frames", (choice.batch, choice.time, choice.features)))
    exported.export(exported.fill(Tagger()), choice.out / "tagger", {"frames": frames}, "scores", {"frames": None})


if __name__ == "__main__":
    main()
