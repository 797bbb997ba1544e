#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the sample fault_pair/: A.onnx, a small keyword spotter with Keras-like names, and B.onnx, the same with the mistake of
a converter. Keras' BatchNormalization has epsilon 0.001. The converter of B wrote the attribute, but for those that follow a
depthwise convolution (it has a path of its own for that pair), where the default of ONNX applies: 1e-5. Where a channel's
variance is small that is no rounding error.

The first node at which B goes wrong is `block1/depthwise_bn`; everything after it inherits the error.
"""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from common import GraphBuilder, normal, options, uniform, write_model

KERAS_EPSILON = 1e-3


class Spotter(GraphBuilder):
    def conv(self, x, name, into, out, kernel, strides=(1, 1), groups=1):
        fan_in = into // groups * kernel * kernel
        kernel_name = f"{name}/kernel"
        weight = self.weight(kernel_name, normal(kernel_name, (out, into // groups, kernel, kernel), fan_in**-0.5))
        return self.node("Conv", [x, weight], name, auto_pad="SAME_UPPER", group=groups, kernel_shape=[kernel] * 2, strides=strides)

    def batch_norm(self, x, name, channels, epsilon):
        weights = [
            self.weight(f"{name}/gamma", uniform(f"{name}/gamma", channels, 0.05, 0.2)),
            self.weight(f"{name}/beta", normal(f"{name}/beta", channels, 0.1)),
            self.weight(f"{name}/moving_mean", normal(f"{name}/moving_mean", channels, 0.1)),
            self.weight(f"{name}/moving_variance", uniform(f"{name}/moving_variance", channels, 0.005, 0.05)),
        ]
        attributes = {} if epsilon is None else {"epsilon": epsilon}
        return self.node("BatchNormalization", [x, *weights], name, **attributes)

    def relu(self, x, name):
        return self.node("Relu", [x], name)


def spotter(depthwise_epsilon, channels=24, classes=12):
    net = Spotter()
    x = net.conv("spectrogram", "stem/conv", 1, channels, 5, strides=(2, 2))
    x = net.relu(net.batch_norm(x, "stem/bn", channels, KERAS_EPSILON), "stem/relu")
    for block in ("block1", "block2", "block3"):
        x = net.conv(x, f"{block}/depthwise", channels, channels, 3, groups=channels)
        x = net.relu(net.batch_norm(x, f"{block}/depthwise_bn", channels, depthwise_epsilon), f"{block}/depthwise_relu")
        x = net.conv(x, f"{block}/pointwise", channels, channels, 1)
        x = net.relu(net.batch_norm(x, f"{block}/pointwise_bn", channels, KERAS_EPSILON), f"{block}/pointwise_relu")
    x = net.node("ReduceMean", [x], "pool", axes=[2, 3], keepdims=0)
    kernel = net.weight("dense/kernel", normal("dense/kernel", (channels, classes), 1.0))
    x = net.node("MatMul", [x, kernel], "dense/matmul")
    x = net.node("Add", [x, net.weight("dense/bias", normal("dense/bias", classes, 0.1))], "dense/add")
    net.node("Softmax", [x], "softmax", outputs=["probabilities"], axis=-1)
    inputs = [helper.make_tensor_value_info("spectrogram", TensorProto.FLOAT, ["batch", 1, 40, 49])]
    outputs = [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", classes])]
    return net.model("keyword_spotter", inputs, outputs, opset=13, ir_version=7)


def main():
    folder = options(__doc__).out / "fault_pair"
    feeds = {"spectrogram": normal("spectrogram", (2, 1, 40, 49))}
    good, faulty = spotter(KERAS_EPSILON), spotter(None)
    right = write_model(good, folder, feeds, "A.onnx")
    (folder / "B.onnx").write_bytes(faulty.SerializeToString(deterministic=True))
    onnx.checker.check_model(str(folder / "B.onnx"), full_check=True)
    wrong = onnxruntime.InferenceSession(str(folder / "B.onnx"), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    print("largest difference of a probability:", np.abs(wrong - right["probabilities"]).max())


if __name__ == "__main__":
    main()
