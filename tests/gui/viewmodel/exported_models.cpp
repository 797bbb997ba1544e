// SPDX-License-Identifier: Apache-2.0
// Writes the graphs node by node.
#include "tests/gui/viewmodel/exported_models.h"

#include <vector>

#include <fmt/format.h>

#include "inspector/base/check.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/text.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax::view_test {
namespace {

class Exporter {
 public:
  enum class Style : uint8_t { metadata, names };
  explicit Exporter(Style style) : style_(style) {}

  // A node in the module `scope`, "layer1.0.conv1"; gives its output.
  std::string add(const std::string& scope, const std::string& op, const std::vector<std::string>& inputs,
                  const std::string& attributes = "") {
    const std::string output = fmt::format("{}_{}", op, count_);
    text_ += fmt::format("node {{ name: \"{}\" op_type: \"{}\" ", name_of(scope, op), op);
    for (const std::string& input : inputs) text_ += fmt::format("input: \"{}\" ", input);
    text_ += fmt::format("output: \"{}\" {} {}}}\n", output, attributes,
                         style_ == Style::metadata ? metadata_of(scope) : "");
    ++count_;
    return output;
  }
  std::string weight(const std::string& name) {
    text_ += fmt::format("initializer {{ name: \"{}\" dims: 3 dims: 3 data_type: 1 raw_data: \"{}\" }}\n", name,
                         std::string(36, 'A'));
    return name;
  }
  // A Constant node of int64 elements.
  std::string constant(const std::string& scope, const std::vector<int>& elements) {
    std::string tensor = fmt::format("dims: {} data_type: 7 ", elements.size());
    for (const int element : elements) tensor += fmt::format("int64_data: {} ", element);
    return add(scope, "Constant", {}, fmt::format("attribute {{ name: \"value\" type: TENSOR t {{ {}}} }}", tensor));
  }
  std::string as_float(const std::string& scope, const std::string& input) {
    return add(scope, "Cast", {input}, "attribute { name: \"to\" type: INT i: 1 }");
  }
  // A Constant node of a float.
  std::string number(const std::string& scope, float number) {
    return add(scope, "Constant", {},
               fmt::format("attribute {{ name: \"value\" type: TENSOR t {{ data_type: 1 float_data: {} }} }}", number));
  }
  std::string text(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) const {
    std::string all = "ir_version: 8 opset_import { version: 17 } graph { name: \"main_graph\"\n" + text_;
    for (const std::string& input : inputs)
      all += fmt::format(
          "input {{ name: \"{}\" type {{ tensor_type {{ elem_type: {} shape {{ dim {{ dim_value: 3 }} dim "
          "{{ dim_value: 3 }} }} }} }} }}\n",
          input,
          input.ends_with("_ids")    ? 7
          : input.ends_with("_mask") ? 9
                                     : 1);
    for (const std::string& output : outputs)
      all += fmt::format("output {{ name: \"{}\" type {{ tensor_type {{ elem_type: 1 }} }} }}\n", output);
    return all + "}\n";
  }

 private:
  // "/layer1/0/conv1/Conv_3" where names have scopes.
  std::string name_of(const std::string& scope, const std::string& op) const {
    if (style_ == Style::metadata) return fmt::format("node_{}_{}", op, count_);
    std::string name;
    for (const std::string_view part : split(scope, '.')) {
      if (!part.empty()) name += "/" + std::string(part);
    }
    return fmt::format("{}/{}_{}", name, op, count_);
  }
  // The modules around, from the outside in, and the operation itself.
  static std::string metadata_of(const std::string& scope) {
    std::string scopes = "''";
    for (size_t at = scope.find('.'); !scope.empty(); at = scope.find('.', at + 1)) {
      scopes += ", '" + scope.substr(0, at) + "'";
      if (at == std::string::npos) break;
    }
    return fmt::format("metadata_props {{ key: \"pkg.torch.onnx.name_scopes\" value: \"[{}, 'op']\" }} ", scopes);
  }

  Style style_;
  std::string text_;
  int count_ = 0;
};

std::string resnet50() {
  Exporter to(Exporter::Style::metadata);
  const auto conv = [&](const std::string& scope, const std::string& x) {
    return to.add(scope, "Conv", {x, to.weight(scope + ".weight"), to.weight(scope + ".bias")});
  };
  std::string x = to.add("maxpool", "MaxPool", {to.add("relu", "Relu", {conv("conv1", "x")})},
                         "attribute { name: \"kernel_shape\" type: INTS ints: 3 ints: 3 }");
  const int blocks[] = {3, 4, 6, 3};
  for (int layer = 0; layer < 4; ++layer) {
    for (int block = 0; block < blocks[layer]; ++block) {
      const std::string scope = fmt::format("layer{}.{}", layer + 1, block);
      std::string y = to.add(scope + ".relu", "Relu", {conv(scope + ".conv1", x)});
      y = conv(scope + ".conv3", to.add(scope + ".relu", "Relu", {conv(scope + ".conv2", y)}));
      const std::string shortcut = block == 0 ? conv(scope + ".downsample.0", x) : x;
      x = to.add(scope + ".relu", "Relu", {to.add(scope, "Add", {y, shortcut})});
    }
  }
  x = to.add("", "Reshape", {to.add("avgpool", "ReduceMean", {x}), to.constant("", {1, 2048})});
  return to.text({"x"}, {to.add("fc", "Gemm", {x, to.weight("fc.weight"), to.weight("fc.bias")})});
}

// features > 4 > block > 0 > 0 around a single Conv.
std::string mobilenet_v3() {
  Exporter to(Exporter::Style::metadata);
  const auto conv = [&](const std::string& scope, const std::string& x) {
    return to.add(scope, "Conv", {x, to.weight(scope + ".weight"), to.weight(scope + ".bias")});
  };
  std::string x = to.add("features.0.2", "HardSwish", {conv("features.0.0", "x")});
  for (int i = 1; i < 16; ++i) {
    const std::string block = fmt::format("features.{}.block", i), act = i < 7 ? "Relu" : "HardSwish";
    int at = 0;
    std::string y = x;
    if (i > 1) {
      y = to.add(fmt::format("{}.{}.2", block, at), act, {conv(fmt::format("{}.{}.0", block, at), y)});
      ++at;
    }
    y = to.add(fmt::format("{}.{}.2", block, at), act, {conv(fmt::format("{}.{}.0", block, at), y)});
    ++at;
    if ((i > 3 && i < 7) || i > 10) {
      const std::string scope = fmt::format("{}.{}", block, at++);
      std::string scale = to.add(scope + ".avgpool", "ReduceMean", {y});
      scale = to.add(scope + ".activation", "Relu", {conv(scope + ".fc1", scale)});
      y = to.add(scope, "Mul", {to.add(scope + ".scale_activation", "HardSigmoid", {conv(scope + ".fc2", scale)}), y});
    }
    y = conv(fmt::format("{}.{}.0", block, at), y);
    const bool has_shortcut = i != 2 && i != 4 && i != 7 && i != 13;
    x = has_shortcut ? to.add(fmt::format("features.{}", i), "Add", {y, x}) : y;
  }
  x = to.add("features.16.2", "HardSwish", {conv("features.16.0", x)});
  x = to.add("", "Reshape", {to.add("avgpool", "ReduceMean", {x}), to.constant("", {1, 960})});
  x = to.add("classifier.1", "HardSwish", {to.add("classifier.0", "Gemm", {x, to.weight("w0"), to.weight("b0")})});
  return to.text({"x"}, {to.add("classifier.3", "Gemm", {x, to.weight("w3"), to.weight("b3")})});
}

std::string lstm() {
  Exporter to(Exporter::Style::names);
  const auto start = [&](int unsqueeze) {
    const std::string size =
        to.add("lstm", "Unsqueeze",
               {to.add("lstm", "Gather", {to.add("lstm", "Shape", {"x"}), to.constant("lstm", {1})}),
                to.constant("lstm", {unsqueeze})});
    const std::string shape = to.add("lstm", "Concat", {to.constant("lstm", {2}), size, to.constant("lstm", {64})},
                                     "attribute { name: \"axis\" type: INT i: 0 }");
    return to.add("lstm", "ConstantOfShape", {shape});
  };
  const std::string h = start(0), c = start(0), rotated = to.add("lstm", "Transpose", {"x"});
  std::string x = rotated;
  for (int layer = 0; layer < 2; ++layer) {
    const auto part = [&](const std::string& of) {
      return to.add("lstm", "Slice",
                    {of, to.constant("lstm", {layer}), to.constant("lstm", {layer + 1}), to.constant("lstm", {0})});
    };
    const std::string name = fmt::format("lstm.{}", layer);
    const std::string out = to.add(
        "lstm", "LSTM", {x, to.weight(name + "W"), to.weight(name + "R"), to.weight(name + "B"), "", part(h), part(c)});
    x = to.add("lstm", "Squeeze", {out, to.constant("lstm", {1})});
  }
  x = to.add("", "Gather", {to.add("lstm", "Transpose", {x}), to.constant("", {-1})});
  return to.text({"x"}, {to.add("fc", "Gemm", {x, to.weight("fc.weight"), to.weight("fc.bias")})});
}

// Five levels of a pyramid, whose boxes are decoded with some seventy Constants.
std::string detector() {
  Exporter to(Exporter::Style::names);
  std::string x =
      to.add("transform", "Div",
             {to.add("transform", "Sub", {"x", to.number("transform", 0.45F)}), to.number("transform", 0.225F)});
  std::vector<std::string> levels, boxes;
  for (int level = 0; level < 5; ++level) {
    const std::string scope = fmt::format("backbone.body.layer{}", level);
    for (int i = 0; i < 4; ++i)
      x = to.add(scope + ".relu", "Relu",
                 {to.add(fmt::format("{}.conv{}", scope, i), "Conv", {x, to.weight(fmt::format("{}.{}", scope, i))})});
    levels.push_back(x);
  }
  for (int level = 0; level < 5; ++level) {
    const std::string head = "rpn.head.conv", anchors = "rpn.anchor_generator", coder = "rpn.box_coder";
    const std::string y =
        to.add(head, "Conv", {levels[static_cast<size_t>(level)], to.weight(fmt::format("rpn{}", level))});
    const std::string shape = to.add(anchors, "Shape", {y});
    const auto side = [&](int axis) { return to.add(anchors, "Gather", {shape, to.constant(anchors, {axis})}); };
    const std::string grid =
        to.add(anchors, "Mul",
               {to.add(anchors, "Range", {to.constant(anchors, {0}), side(2), to.constant(anchors, {1})}),
                to.constant(anchors, {4 << level})});
    const std::string grid_x =
        to.add(anchors, "Mul",
               {to.add(anchors, "Range", {to.constant(anchors, {0}), side(3), to.constant(anchors, {1})}),
                to.constant(anchors, {4 << level})});
    const std::string flat = to.add("rpn", "Reshape", {y, to.constant("rpn", {1, -1, 4})});
    const std::string moved = to.add(
        coder, "Slice",
        {flat, to.constant(coder, {0}), to.constant(coder, {2}), to.constant(coder, {2}), to.constant(coder, {1})});
    boxes.push_back(
        to.add(coder, "Add", {to.add(coder, "Mul", {moved, to.as_float(coder, grid)}), to.as_float(coder, grid_x)}));
  }
  std::string all = to.add("rpn", "Concat", boxes, "attribute { name: \"axis\" type: INT i: 1 }");
  all = to.add("roi_heads", "Clip", {all, to.number("roi_heads", 0), to.number("roi_heads", 800)});
  return to.text({"x"}, {to.add("roi_heads", "Reshape", {all, to.constant("roi_heads", {-1, 4})})});
}

// The attention of both transformers: three projections with a bias or without, scores, a mask, a projection.
std::string attention(Exporter& to, const std::string& scope, const std::string& x, const std::string& mask) {
  const auto heads = [&](const std::string& name) {
    const std::string y = to.add(scope + "." + name, "MatMul", {x, to.weight(scope + "." + name + ".weight")});
    return to.add(scope, "Transpose", {to.add(scope, "Reshape", {y, to.constant(scope, {1, 197, 12, 64})})});
  };
  const std::string q = heads("q_proj"), k = to.add(scope, "Transpose", {heads("k_proj")}), v = heads("v_proj");
  std::string scores = to.add(scope, "Mul", {to.add(scope, "MatMul", {q, k}), to.weight(scope + ".scale")});
  if (!mask.empty()) scores = to.add(scope, "Add", {scores, mask});
  const std::string y = to.add(scope, "MatMul", {to.add(scope, "Softmax", {scores}), v});
  const std::string flat =
      to.add(scope, "Reshape", {to.add(scope, "Transpose", {y}), to.constant(scope, {1, 197, 768})});
  return to.add(scope + ".out_proj", "MatMul", {flat, to.weight(scope + ".out_proj.weight")});
}

std::string vit() {
  Exporter to(Exporter::Style::metadata);
  std::string x = to.add("conv_proj", "Conv", {"x", to.weight("conv_proj.weight")});
  x = to.add("", "Transpose", {to.add("", "Reshape", {x, to.constant("", {1, 768, 196})})});
  x = to.add("", "Concat", {to.weight("class_token"), x}, "attribute { name: \"axis\" type: INT i: 1 }");
  x = to.add("encoder", "Add", {x, to.weight("pos_embedding")});
  for (int layer = 0; layer < 12; ++layer) {
    const std::string scope = fmt::format("encoder.layers.encoder_layer_{}", layer);
    const auto norm = [&](const std::string& name) {
      return to.add(scope + "." + name, "LayerNormalization",
                    {x, to.weight(scope + name + "w"), to.weight(scope + name + "b")});
    };
    x = to.add(scope, "Add", {attention(to, scope + ".self_attention", norm("ln_1"), ""), x});
    const std::string mlp = scope + ".mlp";
    std::string y = to.add(mlp + ".0", "Gemm", {norm("ln_2"), to.weight(mlp + "0w"), to.weight(mlp + "0b")});
    y = to.add(mlp + ".3", "Gemm", {to.add(mlp + ".1", "Gelu", {y}), to.weight(mlp + "3w"), to.weight(mlp + "3b")});
    x = to.add(scope, "Add", {y, x});
  }
  x = to.add("encoder.ln", "LayerNormalization", {x, to.weight("ln.w"), to.weight("ln.b")});
  x = to.add("", "Gather", {x, to.constant("", {0})});
  return to.text({"x"}, {to.add("heads.head", "Gemm", {x, to.weight("head.w"), to.weight("head.b")})});
}

std::string llama() {
  Exporter to(Exporter::Style::metadata);
  std::string x = to.add("model.embed_tokens", "Gather", {to.weight("embed"), "input_ids"});
  const std::string positions = to.add("model", "Unsqueeze", {"position_ids", to.constant("model", {1})});
  const std::string angles =
      to.add("model.rotary_emb", "MatMul", {to.weight("inv_freq"), to.as_float("model.rotary_emb", positions)});
  const std::string mask =
      to.add("model", "Where", {"attention_mask", to.number("model", 0), to.number("model", -10000)});
  const std::string cos = to.add("model.rotary_emb", "Cos", {angles}),
                    sin = to.add("model.rotary_emb", "Sin", {angles});
  for (int layer = 0; layer < 16; ++layer) {
    const std::string scope = fmt::format("model.layers.{}", layer);
    const auto norm = [&](const std::string& name) {
      const std::string in = scope + "." + name;
      const std::string mean = to.add(in, "ReduceMean", {to.add(in, "Pow", {x, to.number(in, 2)})});
      const std::string scaled = to.add(
          in, "Mul",
          {x, to.add(in, "Reciprocal", {to.add(in, "Sqrt", {to.add(in, "Add", {mean, to.number(in, 1e-5F)})})})});
      return to.add(in, "Mul", {to.weight(in + ".weight"), scaled});
    };
    const std::string y = norm("input_layernorm");
    const std::string rotated =
        to.add(scope + ".self_attn", "Add",
               {to.add(scope + ".self_attn", "Mul", {y, cos}), to.add(scope + ".self_attn", "Mul", {y, sin})});
    x = to.add(scope, "Add", {x, attention(to, scope + ".self_attn", rotated, mask)});
    const std::string mlp = scope + ".mlp", z = norm("post_attention_layernorm");
    const std::string gate = to.add(mlp + ".gate_proj", "MatMul", {z, to.weight(mlp + "g")});
    const std::string act = to.add(mlp + ".act_fn", "Mul", {gate, to.add(mlp + ".act_fn", "Sigmoid", {gate})});
    const std::string product =
        to.add(mlp, "Mul", {act, to.add(mlp + ".up_proj", "MatMul", {z, to.weight(mlp + "u")})});
    x = to.add(scope, "Add", {x, to.add(mlp + ".down_proj", "MatMul", {product, to.weight(mlp + "d")})});
  }
  return to.text({"input_ids", "attention_mask", "position_ids"},
                 {to.add("lm_head", "MatMul", {x, to.weight("lm_head.weight")})});
}

}  // namespace

std::span<const ExportedModel> exported_models() {
  static constexpr ExportedModel kModels[] = {{"resnet50", resnet50}, {"mobilenet_v3", mobilenet_v3},
                                              {"lstm", lstm},         {"detector", detector},
                                              {"vit", vit},           {"llama", llama}};
  return kModels;
}

std::string written(const ExportedModel& model) {
  const std::string path = scratch(std::string(model.name) + ".textproto");
  PX_CHECK(write_file(path, model.text()).ok());
  return path;
}

}  // namespace parallax::view_test
