// SPDX-License-Identifier: Apache-2.0
// Small decoders for the tests of states, with random weights: the cache of each layer is an input `past.N.key` and
// `past.N.value`, longer by the new tokens in an output `present.N.key` and `present.N.value`.
#pragma once

#include <string>
#include <vector>

#include "inspector/exec/executor.h"
#include "tests/runtime/model_text.h"

namespace parallax::decoder_models {

enum class Kind { several_heads, shared_heads, in_branch, operator_attention, group_query };

constexpr int64_t kSize = 4, kWidth = 16;  // of a head, of a token

inline int64_t cached_heads(Kind kind) { return kind == Kind::several_heads || kind == Kind::in_branch ? 4 : 2; }

inline std::string ints_text(const std::string& name, const std::vector<int64_t>& values) {
  std::string text = "initializer { name: \"" + name + "\" data_type: 7 dims: " + std::to_string(values.size());
  for (int64_t value : values) text += " int64_data: " + std::to_string(value);
  return text + " } ";
}

inline std::string floats_text(const std::string& name, const std::vector<int64_t>& dims, uint32_t seed) {
  std::string text = "initializer { name: \"" + name + "\" data_type: 1";
  int64_t count = 1;
  for (int64_t dim : dims) {
    text += " dims: " + std::to_string(dim);
    count *= dim;
  }
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    text += " float_data: " + std::to_string(static_cast<double>(seed >> 16) / 65536.0 - 0.5);
  }
  return text + " } ";
}

inline std::string shape_text(const std::vector<std::string>& dims) {
  std::string text = "shape { ";
  for (const std::string& dim : dims) {
    const bool is_number = dim.find_first_not_of("0123456789") == std::string::npos;
    text += is_number ? "dim { dim_value: " + dim + " } " : "dim { dim_param: \"" + dim + "\" } ";
  }
  return text + "}";
}

inline std::string ints_attribute_text(const std::string& name, const std::vector<int64_t>& values) {
  std::string text = "attribute { name: \"" + name + "\" type: INTS";
  for (int64_t value : values) text += " ints: " + std::to_string(value);
  return text + " } ";
}

inline std::string int_attribute_text(const std::string& name, int64_t value) {
  return "attribute { name: \"" + name + "\" type: INT i: " + std::to_string(value) + " } ";
}

// One layer: "x.N" of [batch, sequence, 16] to "x.N+1".
class Layer {
 public:
  Layer(Kind kind, int index) : kind_(kind), index_(index), heads_(cached_heads(kind)) {}

  std::string text() {
    project("q", kWidth);
    project("k", heads_ * kSize);
    project("v", heads_ * kSize);
    if (kind_ == Kind::operator_attention) {
      attend_by_operator();
    } else if (kind_ == Kind::group_query) {
      attend_in_groups();
    } else {
      attend_by_parts();
    }
    add("Add", {"x." + std::to_string(index_), own("attended")}, "x." + std::to_string(index_ + 1));
    text_ += ports("input", "past") + ports("output", "present");
    return text_;
  }

 private:
  std::string own(const std::string& name) const { return name + "_" + std::to_string(index_); }
  std::string port(const std::string& role, const std::string& what) const {
    return role + "." + std::to_string(index_) + "." + what;
  }
  void add(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
           const std::string& more = "") {
    text_ += model_text::node(op, inputs, {output}, more);
  }
  std::string ports(const std::string& direction, const std::string& role) const {
    const std::string shape =
        shape_text({"batch", std::to_string(heads_), role == "past" ? "past" : "total", std::to_string(kSize)});
    return model_text::value(direction, port(role, "key"), 1, shape) +
           model_text::value(direction, port(role, "value"), 1, shape);
  }

  void project(const std::string& name, int64_t width) {
    text_ += floats_text(own("w_" + name), {kWidth, width}, static_cast<uint32_t>(7 * index_ + name[0]));
    add("MatMul", {"x." + std::to_string(index_), own("w_" + name)}, own(name + "_flat"));
  }
  void split_heads(const std::string& name) {
    text_ += ints_text(own("dims_" + name), {0, 0, -1, kSize});
    add("Reshape", {own(name + "_flat"), own("dims_" + name)}, own(name + "_rows"));
    add("Transpose", {own(name + "_rows")}, own(name), ints_attribute_text("perm", {0, 2, 1, 3}));
  }
  void join_past(const std::string& what, const std::string& name) {
    const std::string axis = int_attribute_text("axis", what == "key" ? 2 : -2);
    const std::string past = port("past", what), present = port("present", what);
    if (kind_ != Kind::in_branch) return add("Concat", {past, own(name)}, present, axis);
    // The cache stands in the enclosing graph; the other branch begins anew.
    const auto branch = [&](const std::string& attribute, const std::string& op, std::vector<std::string> inputs,
                            const std::string& more) {
      const std::string result = own(attribute + "_" + name);
      return "attribute { name: \"" + attribute + "\" type: GRAPH g { name: \"" + attribute + "\" " +
             model_text::node(op, inputs, {result}, more) + model_text::value("output", result) + " } } ";
    };
    add("If", {"use_cache"}, present,
        branch("then_branch", "Concat", {past, own(name)}, axis) + branch("else_branch", "Identity", {own(name)}, ""));
  }
  // Each cached head as often as queries share it.
  std::string repeated(const std::string& what, const std::string& name) {
    const std::string present = port("present", what);
    if (heads_ * kSize == kWidth) return present;
    text_ += ints_text(own("axis_" + name), {2}) + ints_text(own("times_" + name), {1, 1, 2, 1, 1}) +
             ints_text(own("all_heads_" + name), {0, 4, -1, kSize});
    add("Unsqueeze", {present, own("axis_" + name)}, own(name + "_single"));
    add("Expand", {own(name + "_single"), own("times_" + name)}, own(name + "_expanded"));
    add("Reshape", {own(name + "_expanded"), own("all_heads_" + name)}, own(name + "_all"));
    return own(name + "_all");
  }
  void attend_by_parts() {
    for (const char* name : {"q", "k", "v"}) split_heads(name);
    join_past("key", "k");
    join_past("value", "v");
    add("Transpose", {repeated("key", "k")}, own("k_columns"), ints_attribute_text("perm", {0, 1, 3, 2}));
    add("MatMul", {own("q"), own("k_columns")}, own("products"));
    text_ += floats_text(own("scale"), {}, 77);
    add("Mul", {own("products"), own("scale")}, own("scores"));
    add("Softmax", {own("scores")}, own("weights"), int_attribute_text("axis", -1));
    add("MatMul", {own("weights"), repeated("value", "v")}, own("sums"));
    add("Transpose", {own("sums")}, own("sum_rows"), ints_attribute_text("perm", {0, 2, 1, 3}));
    text_ += ints_text(own("joined"), {0, 0, kWidth});
    add("Reshape", {own("sum_rows"), own("joined")}, own("attended"));
  }
  void attend_by_operator() {
    text_ += model_text::node(
        "Attention", {own("q_flat"), own("k_flat"), own("v_flat"), "", port("past", "key"), port("past", "value")},
        {own("attended"), port("present", "key"), port("present", "value")},
        int_attribute_text("q_num_heads", 4) + int_attribute_text("kv_num_heads", 2) +
            int_attribute_text("is_causal", 1));
  }
  void attend_in_groups() {
    text_ += model_text::node(
        "GroupQueryAttention",
        {own("q_flat"), own("k_flat"), own("v_flat"), port("past", "key"), port("past", "value"), "seqlens_k",
         "total_length"},
        {own("attended"), port("present", "key"), port("present", "value")},
        "domain: \"com.microsoft\" " + int_attribute_text("num_heads", 4) + int_attribute_text("kv_num_heads", 2));
  }

  Kind kind_;
  int index_;
  int64_t heads_;
  std::string text_;
};

constexpr int kLayers = 2;

// Inputs x.0 (use_cache; seqlens_k, total_length), past...; outputs x.2, past_shape, present...
inline std::shared_ptr<const Model> decoder(Kind kind) {
  std::string graph = model_text::value("input", "x.0", 1, shape_text({"batch", "sequence", std::to_string(kWidth)}));
  if (kind == Kind::in_branch) graph += model_text::value("input", "use_cache", 9, shape_text({"1"}));
  if (kind == Kind::group_query) {
    graph += model_text::value("input", "seqlens_k", 6, shape_text({"batch"})) +
             model_text::value("input", "total_length", 6, shape_text({"1"}));
  }
  graph += model_text::value("output", "x." + std::to_string(kLayers)) + model_text::value("output", "past_shape", 7);
  graph += model_text::node("Shape", {"past.0.key"}, {"past_shape"});
  for (int index = 0; index < kLayers; ++index) graph += Layer(kind, index).text();
  const std::string text =
      "ir_version: 10 opset_import { version: 23 } opset_import { domain: \"com.microsoft\" "
      "version: 1 } graph { name: \"decoder\" " +
      graph + " }";
  auto model = import_model(std::as_bytes(std::span(text)), "", "decoder");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? model.take() : nullptr;
}

inline std::vector<StateBinding> bindings() {
  std::vector<StateBinding> all;
  for (int index = 0; index < kLayers; ++index) {
    for (const char* what : {"key", "value"}) {
      const std::string end = "." + std::to_string(index) + "." + what;
      all.push_back({"past" + end, "present" + end, 2});
    }
  }
  return all;
}

}  // namespace parallax::decoder_models
