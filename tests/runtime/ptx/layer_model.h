// SPDX-License-Identifier: Apache-2.0
// A Llama layer in the parts that exporters write, with weights that are folded, and the bytes that it has to move.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/runtime/model_text.h"

namespace parallax::layer_model {

using model_text::integer_attribute;
using model_text::integers_attribute;

// Figures of the data sheet of NVIDIA's H100 SXM, a second: bytes of memory, and operations of dense products.
struct Card {
  double bytes = 3.35e12, float32 = 67e12, tf32 = 495e12;
};

// That of tests/bench/gpu, a 32nd of its sizes in each direction but for the number of heads: so are the ratios of
// weights, activations and scores.
struct LayerSizes {
  static constexpr double kScale = 32;

  int64_t batch = 2, sequence = 32, past = 0, width = 128, heads = 32, inner = 344;
  int64_t head() const { return width / heads; }
  int64_t weight_bytes() const { return 4 * (4 * width * width + 3 * width * inner); }
  int64_t token_bytes() const { return 4 * batch * sequence * width; }
  int64_t inner_bytes() const { return 4 * batch * sequence * inner; }
  int64_t cache_bytes() const { return 2 * 4 * batch * (past + sequence) * width; }
  // The bytes that are left when all is fused that can be: the products of Q, K and V read x and store three; attention
  // reads those (K and V of the past, too) and stores one; the product after it adds x; gate and up store one together;
  // down adds.
  int64_t least_bytes() const { return weight_bytes() + 12 * token_bytes() + cache_bytes() + 2 * inner_bytes(); }
  // A product and a sum are two; with those of the scores and of the values.
  double operations() const {
    const auto tokens = static_cast<double>(batch * sequence);
    return tokens * static_cast<double>(weight_bytes() / 2 + 4 * (past + sequence) * width);
  }
  // Milliseconds that a run at the benchmark's sizes takes, launches and waits aside: those of the products, at the
  // rate of their operations or of their operands' bytes, and those of all other bytes, one after the other.
  double products_ms(double operand_bytes, double operations_a_second, const Card& card = {}) const {
    const double tokens_scale = sequence > 1 ? kScale : 1;
    return 1e3 * kScale * kScale *
           std::max(operand_bytes / card.bytes, tokens_scale * operations() / operations_a_second);
  }
  double bytes_ms(double bytes, const Card& card = {}) const { return 1e3 * kScale * kScale * bytes / card.bytes; }
};

inline std::string numbers(const std::string& name, const std::vector<int64_t>& values) {
  std::string text = "initializer { name: \"" + name + "\" data_type: 7 dims: " + std::to_string(values.size());
  for (const int64_t value : values) text += " int64_data: " + std::to_string(value);
  return text + " } ";
}
inline std::string number(const std::string& name, double value) {
  return "initializer { name: \"" + name + "\" data_type: 1 float_data: " + std::to_string(value) + " } ";
}
class LayerText {
 public:
  explicit LayerText(const LayerSizes& sizes) : sizes_(sizes) {}

  // With a past, the caches are inputs past_k, past_v and outputs present_k, present_v, which grow along axis 2.
  std::string text() {
    constant("table", {1, 1, sizes_.sequence, sizes_.head()}, 0.25);
    graph_ += number("epsilon", 1e-5) + number("two", 2) + number("scale", 0.5) + numbers("zero", {0}) +
              numbers("half", {sizes_.head() / 2}) + numbers("end", {sizes_.head()}) + numbers("last", {3}) +
              numbers("heads", {sizes_.batch, sizes_.sequence, sizes_.heads, sizes_.head()}) +
              numbers("joined", {sizes_.batch, sizes_.sequence, sizes_.width});
    const std::string h = norm("h", "x");
    const std::string q = rotated("q", heads("q", h)), k = rotated("k", heads("k", h)), v = heads("v", h);
    std::string all_k = k, all_v = v;
    if (sizes_.past > 0) {
      graph_ += model_text::node("Concat", {"past_k", k}, {"present_k"}, integer_attribute("axis", 2)) +
                model_text::node("Concat", {"past_v", v}, {"present_v"}, integer_attribute("axis", 2));
      all_k = "present_k", all_v = "present_v";
    }
    add("Transpose", {all_k}, "k_columns", integers_attribute("perm", {0, 1, 3, 2}));
    add("MatMul", {q, "k_columns"}, "scores");
    add("Mul", {"scores", "scale"}, "scaled");
    add("Softmax", {"scaled"}, "softened", integer_attribute("axis", -1));
    add("MatMul", {"softened", all_v}, "mixed");
    add("Transpose", {"mixed"}, "mixed_rows", integers_attribute("perm", {0, 2, 1, 3}));
    add("Reshape", {"mixed_rows", "joined"}, "attended");
    add("Add", {"x", product("o", "attended", sizes_.width, sizes_.width)}, "x2");
    const std::string h2 = norm("h2", "x2");
    const std::string gate = product("gate", h2, sizes_.width, sizes_.inner);
    add("Sigmoid", {gate}, "gate_sigmoid");
    add("Mul", {gate, "gate_sigmoid"}, "gate_swish");
    add("Mul", {"gate_swish", product("up", h2, sizes_.width, sizes_.inner)}, "gated");
    add("Add", {"x2", product("down", "gated", sizes_.inner, sizes_.width)}, "y");
    const std::vector<int64_t> rows{sizes_.batch, sizes_.sequence, sizes_.width};
    graph_ += model_text::value("input", "x", 1, model_text::dims_text(rows)) +
              model_text::value("output", "y", 1, model_text::dims_text(rows));
    for (const std::string name : {"k", "v"}) {
      if (sizes_.past == 0) continue;
      const std::string cache = "shape { dim { dim_value: " + std::to_string(sizes_.batch) +
                                " } dim { dim_value: " + std::to_string(sizes_.heads) + " } dim { dim_param: \"";
      const std::string rest = "\" } dim { dim_value: " + std::to_string(sizes_.head()) + " } } ";
      graph_ += model_text::value("input", "past_" + name, 1, cache + "past" + rest) +
                model_text::value("output", "present_" + name, 1, cache + "present" + rest);
    }
    return graph_;
  }

 private:
  void add(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
           const std::string& more = "") {
    graph_ += model_text::node(op, inputs, {output}, more);
  }
  void constant(const std::string& name, const std::vector<int64_t>& shape, double value) {
    graph_ += numbers(name + "_shape", shape);
    add("ConstantOfShape", {name + "_shape"}, name,
        "attribute { name: \"value\" type: TENSOR t { dims: 1 data_type: 1 float_data: " + std::to_string(value) +
            " } } ");
  }
  std::string product(const std::string& name, const std::string& x, int64_t rows, int64_t columns) {
    constant(name + "_weight", {rows, columns}, 0.01);
    add("MatMul", {x, name + "_weight"}, name);
    return name;
  }
  std::string norm(const std::string& name, const std::string& x) {
    constant(name + "_scale", {sizes_.width}, 1);
    add("Pow", {x, "two"}, name + "_squares");
    add("ReduceMean", {name + "_squares"}, name + "_mean", integers_attribute("axes", {-1}));
    add("Add", {name + "_mean", "epsilon"}, name + "_sum");
    add("Sqrt", {name + "_sum"}, name + "_root");
    add("Div", {x, name + "_root"}, name + "_normal");
    add("Mul", {name + "_normal", name + "_scale"}, name);
    return name;
  }
  std::string heads(const std::string& name, const std::string& x) {
    add("Reshape", {product(name, x, sizes_.width, sizes_.width), "heads"}, name + "_split");
    add("Transpose", {name + "_split"}, name + "_heads", integers_attribute("perm", {0, 2, 1, 3}));
    return name + "_heads";
  }
  std::string rotated(const std::string& name, const std::string& x) {
    add("Slice", {x, "zero", "half", "last"}, name + "_first");
    add("Slice", {x, "half", "end", "last"}, name + "_second");
    add("Neg", {name + "_second"}, name + "_minus");
    add("Concat", {name + "_minus", name + "_first"}, name + "_rolled", integer_attribute("axis", -1));
    add("Mul", {x, "table"}, name + "_cosine");
    add("Mul", {name + "_rolled", "table"}, name + "_sine");
    add("Add", {name + "_cosine", name + "_sine"}, name + "_rotated");
    return name + "_rotated";
  }

  LayerSizes sizes_;
  std::string graph_;
};

}  // namespace parallax::layer_model
