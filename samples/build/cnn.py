#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the samples resnet/ and mobilenet/: residual blocks with BatchNormalization, and inverted residuals with depthwise
convolutions and Clip. Written node by node, with names like those of TorchScript's exporter and the opsets of their time.

    python cnn.py                                                      # the committed ones
    python cnn.py --width 32 --depth 4 --image 96 --out larger
"""
import numpy as np
from onnx import TensorProto, helper

from common import GraphBuilder, normal, options, uniform, write_model


class Network(GraphBuilder):
    def conv(self, x, name, into, out, kernel, stride=1, groups=1, bias=False):
        fan_in = into // groups * kernel * kernel
        inputs = [x, self.weight(f"{name}.weight", normal(f"{name}.weight", (out, into // groups, kernel, kernel), fan_in**-0.5))]
        if bias:
            inputs.append(self.weight(f"{name}.bias", normal(f"{name}.bias", out, 0.1)))
        pad = kernel // 2
        return self.node("Conv", inputs, f"/{name}/Conv", dilations=[1, 1], group=groups, kernel_shape=[kernel, kernel],
                         pads=[pad] * 4, strides=[stride, stride])

    def batch_norm(self, x, name, channels, epsilon=1e-5):
        weights = [
            self.weight(f"{name}.weight", uniform(f"{name}.weight", channels, 0.7, 1.3)),
            self.weight(f"{name}.bias", normal(f"{name}.bias", channels, 0.1)),
            self.weight(f"{name}.running_mean", normal(f"{name}.running_mean", channels, 0.1)),
            self.weight(f"{name}.running_var", uniform(f"{name}.running_var", channels, 0.3, 1.5)),
        ]
        return self.node("BatchNormalization", [x, *weights], f"/{name}/BatchNormalization", epsilon=epsilon, momentum=0.9)

    def relu(self, x, name):
        return self.node("Relu", [x], f"/{name}/Relu")

    def relu6(self, x, name):
        if not any(t.name == "relu6.min" for t in self.initializers):
            self.weight("relu6.min", np.float32(0)), self.weight("relu6.max", np.float32(6))
        return self.node("Clip", [x, "relu6.min", "relu6.max"], f"/{name}/Clip")

    def classifier(self, x, into, classes):
        x = self.node("GlobalAveragePool", [x], "/avgpool/GlobalAveragePool")
        x = self.node("Flatten", [x], "/Flatten", axis=1)
        weight = self.weight("fc.weight", normal("fc.weight", (classes, into), into**-0.5))
        bias = self.weight("fc.bias", normal("fc.bias", classes, 0.1))
        return self.node("Gemm", [x, weight, bias], "/fc/Gemm", outputs=["logits"], alpha=1.0, beta=1.0, transB=1)


def residual_block(net, x, name, into, out, stride):
    y = net.relu(net.batch_norm(net.conv(x, f"{name}/conv1", into, out, 3, stride), f"{name}/bn1", out), f"{name}/relu")
    y = net.batch_norm(net.conv(y, f"{name}/conv2", out, out, 3), f"{name}/bn2", out)
    if stride != 1 or into != out:
        x = net.batch_norm(net.conv(x, f"{name}/downsample.0", into, out, 1, stride), f"{name}/downsample.1", out)
    return net.relu(net.node("Add", [y, x], f"/{name}/Add"), f"{name}/relu_1")


def resnet(width, depth, classes):
    net = Network()
    x = net.conv("image", "conv1", 3, width, 7, stride=2)
    x = net.relu(net.batch_norm(x, "bn1", width), "relu")
    x = net.node("MaxPool", [x], "/maxpool/MaxPool", kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2], ceil_mode=0)
    into = width
    for stage in range(2):
        out = width << stage
        for block in range(depth):
            x = residual_block(net, x, f"layer{stage + 1}/layer{stage + 1}.{block}", into, out, 2 if stage and not block else 1)
            into = out
    net.classifier(x, into, classes)
    return net


def inverted_residual(net, x, name, into, out, stride, expand):
    hidden = into * expand
    y = net.relu6(net.batch_norm(net.conv(x, f"{name}/expand", into, hidden, 1), f"{name}/expand_bn", hidden), f"{name}/expand_relu")
    y = net.conv(y, f"{name}/depthwise", hidden, hidden, 3, stride, groups=hidden)
    y = net.relu6(net.batch_norm(y, f"{name}/depthwise_bn", hidden), f"{name}/depthwise_relu")
    y = net.batch_norm(net.conv(y, f"{name}/project", hidden, out, 1), f"{name}/project_bn", out)
    return net.node("Add", [x, y], f"/{name}/Add") if stride == 1 and into == out else y


def mobilenet(width, depth, classes):
    net = Network()
    x = net.relu6(net.batch_norm(net.conv("image", "stem/conv", 3, width, 3, stride=2), "stem/bn", width), "stem/relu")
    into = width
    for stage in range(2):
        out = width << stage
        for block in range(depth):
            x = inverted_residual(net, x, f"features/{stage}.{block}", into, out, 2 if stage and not block else 1, expand=4)
            into = out
    net.classifier(x, into, classes)
    return net


def main():
    choice = options(__doc__, width=8, depth=2, image=32, batch=2, classes=10)
    image = ["batch", 3, choice.image, choice.image]
    feeds = {"image": normal("image", [choice.batch, *image[1:]])}
    for name, network, opset, ir_version in (("resnet", resnet, 13, 7), ("mobilenet", mobilenet, 17, 8)):
        inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, image)]
        outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", choice.classes])]
        model = network(choice.width, choice.depth, choice.classes).model(name, inputs, outputs, opset, ir_version)
        write_model(model, choice.out / name, feeds)


if __name__ == "__main__":
    main()
