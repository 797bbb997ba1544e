// SPDX-License-Identifier: Apache-2.0
// A model with scopes as real exports have them: what the benchmarks of layout and of frames draw.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "inspector/model/io/import.h"

namespace parallax {

// `blocks` blocks of 70 operators in an attention and a feed-forward part.
inline std::string scoped_transformer_text(int blocks) {
  std::string text = "ir_version: 8 opset_import { version: 17 } graph { name: \"transformer\" ";
  const std::string type = " type { tensor_type { elem_type: 1 shape { dim { dim_value: 8 } } } } } ";
  text += "input { name: \"x\"" + type + "input { name: \"mask\"" + type;
  std::string stream = "x";
  int next = 0;
  const auto add = [&](const std::string& scope, const std::string& op, const std::string& a, const std::string& b) {
    const std::string output = "v" + std::to_string(next++);
    text += "node { name: \"/" + scope + "/" + op + "_" + output + "\" op_type: \"" + op + "\" input: \"" + a + "\" ";
    if (!b.empty()) text += "input: \"" + b + "\" ";
    text += "output: \"" + output + "\" } ";
    return output;
  };
  for (int block = 0; block < blocks; ++block) {
    const std::string layer = "layers." + std::to_string(block);
    std::string branches[3];
    for (std::string& branch : branches) {
      branch = stream;
      for (int i = 0; i < 11; ++i) branch = add(layer + "/attn", i % 2 == 0 ? "Neg" : "Abs", branch, "");
    }
    const std::string scores =
        add(layer + "/attn", "Add", add(layer + "/attn", "Mul", branches[0], branches[1]), "mask");
    stream = add(layer, "Add", stream, add(layer + "/attn", "Mul", scores, branches[2]));
    std::string hidden = stream;
    for (int i = 0; i < 31; ++i) hidden = add(layer + "/mlp", i % 2 == 0 ? "Relu" : "Exp", hidden, "");
    stream = add(layer, "Add", stream, hidden);
  }
  text += "output { name: \"" + stream + "\"" + type + "}";
  return text;
}

inline std::shared_ptr<const Model> scoped_transformer(int blocks) {
  const std::string text = scoped_transformer_text(blocks);
  return import_model(std::as_bytes(std::span<const char>(text)), "", "transformer.textproto").take();
}

}  // namespace parallax
