// SPDX-License-Identifier: Apache-2.0
// The text of a network, in float or in half precision with casts around what stays in float.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "inspector/tensor/float_formats.h"

namespace parallax::end_to_end {

// Every node has the name <op>_<output>.
class NetworkText {
 public:
  explicit NetworkText(bool is_half) : is_half_(is_half) {}

  bool is_half() const { return is_half_; }

  void node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
            const std::string& more = "") {
    text_ += "node { op_type: \"" + op + "\" name: \"" + op + "_" + output + "\" ";
    for (const std::string& input : inputs) text_ += "input: \"" + input + "\" ";
    text_ += "output: \"" + output + "\" " + more + "} ";
  }

  std::string cast(const std::string& input, const std::string& output, int type) {
    node("Cast", {input}, output, "attribute { name: \"to\" type: INT i: " + std::to_string(type) + " } ");
    return output;
  }

  // `name` as the half network computes with it.
  std::string in_half(const std::string& name) { return is_half_ ? cast(name, name + "_half", 10) : name; }

  void in_float(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
    if (!is_half_) return node(op, inputs, output);
    inputs.front() = cast(inputs.front(), output + "_in", 1);
    node(op, inputs, output + "_float");
    cast(output + "_float", output, 10);
  }

  // The graph's output `name`, a float, of what the network computes in its own type.
  void result(const std::string& op, const std::vector<std::string>& inputs, const std::string& name) {
    node(op, inputs, is_half_ ? name + "_half" : name);
    if (is_half_) cast(name + "_half", name, 1);
  }

  // Numbers below 1, rounded where the network is in half precision.
  using Change = std::function<double(int element, double number)>;
  void weight(const std::string& name, const std::vector<int>& dims, int phase, const Change& change = {}) {
    add_weight(name, dims, phase, is_half_, change);
  }
  void float_weight(const std::string& name, const std::vector<int>& dims, int phase) {
    add_weight(name, dims, phase, false, {});
  }

  void add(const std::string& text) { text_ += text; }

  // A model with the input x and the output y, float[4,8] both.
  std::string text() const {
    const std::string type =
        " type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 8 } } } } } ";
    return "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" " + text_ + "input { name: \"x\"" + type +
           "output { name: \"y\"" + type + "}";
  }

 private:
  void add_weight(const std::string& name, const std::vector<int>& dims, int phase, bool is_half,
                  const Change& change) {
    text_ += "initializer { name: \"" + name + "\" data_type: " + (is_half ? "10" : "1");
    int count = 1;
    for (const int dim : dims) {
      text_ += " dims: " + std::to_string(dim);
      count *= dim;
    }
    for (int i = 0; i < count; ++i) {
      double number = 0.8 * std::sin(7.0 * i + phase);
      if (change) number = change(i, number);
      text_ += is_half ? fmt::format(" int32_data: {}", float16_from_double(number))
                       : fmt::format(" float_data: {}", number);
    }
    text_ += " } ";
  }

  bool is_half_;
  std::string text_;
};

}  // namespace parallax::end_to_end
