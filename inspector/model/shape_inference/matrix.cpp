// SPDX-License-Identifier: Apache-2.0
// Shapes of matrix products, Gemm, Einsum, attention and Fourier transforms.
#include "inspector/model/shape_inference/matrix.h"

#include <array>
#include <map>

#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

void matmul(NodeContext& context) { context.set_shape(0, matmul_shape(context.shape(0), context.shape(1))); }
void q_linear_matmul(NodeContext& context) { context.set_shape(0, matmul_shape(context.shape(0), context.shape(3))); }

void gemm(NodeContext& context) {
  const size_t row_axis = context.integer_or("transA", 0) != 0 ? 1 : 0;
  const size_t column_axis = context.integer_or("transB", 0) != 0 ? 0 : 1;
  context.set_shape(0, DimExpressions{context.dim(0, row_axis), context.dim(1, column_axis)});
}

// One operand's letters, with the position of "..." among them.
struct Term {
  std::string letters;
  std::optional<size_t> ellipsis;
};

std::optional<Term> parse_term(std::string_view text) {
  Term term;
  for (size_t index = 0; index < text.size(); ++index) {
    if (text[index] == '.') {
      if (term.ellipsis || text.substr(index, 3) != "...") return std::nullopt;
      term.ellipsis = term.letters.size();
      index += 2;
    } else if (text[index] != ' ') {
      term.letters += text[index];
    }
  }
  return term;
}

struct EinsumDims {
  std::map<char, DimExpression> letters;
  DimExpressions ellipsis;
};

bool add_operand(const Term& term, const DimExpressions& shape, EinsumDims& dims) {
  if (shape.size() < term.letters.size() || (!term.ellipsis && shape.size() != term.letters.size())) return false;
  const size_t covered = shape.size() - term.letters.size();
  for (size_t index = 0; index < term.letters.size(); ++index) {
    const DimExpression& dim = shape[term.ellipsis && index >= *term.ellipsis ? index + covered : index];
    const auto [location, is_new] = dims.letters.emplace(term.letters[index], dim);
    if (!is_new) location->second = broadcast(location->second, dim);
  }
  if (term.ellipsis) {
    const auto begin = shape.begin() + static_cast<std::ptrdiff_t>(*term.ellipsis);
    dims.ellipsis = broadcast(dims.ellipsis, DimExpressions(begin, begin + static_cast<std::ptrdiff_t>(covered)));
  }
  return true;
}

// Without "->" the output has the letters that occur once, in alphabetical order, after the ellipsis.
Term implicit_output(std::string_view inputs) {
  std::map<char, int> counts;
  for (const char letter : inputs) {
    if (letter != '.' && letter != ',' && letter != ' ') ++counts[letter];
  }
  Term output;
  if (inputs.find("...") != std::string_view::npos) output.ellipsis = 0;
  for (const auto& [letter, count] : counts) {
    if (count == 1) output.letters += letter;
  }
  return output;
}

void einsum(NodeContext& context) {
  const std::string equation = context.text("equation");
  const size_t arrow = equation.find("->");
  std::string_view left = std::string_view(equation).substr(0, arrow);
  const auto output =
      arrow == std::string::npos ? implicit_output(left) : parse_term(std::string_view(equation).substr(arrow + 2));
  EinsumDims dims;
  for (size_t index = 0; index < context.input_count(); ++index) {
    const size_t comma = left.find(',');
    const auto term = parse_term(left.substr(0, comma));
    if (!term || !context.shape(index) || !add_operand(*term, *context.shape(index), dims)) return;
    left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
  }
  if (!output) return;
  DimExpressions result;
  for (size_t index = 0; index <= output->letters.size(); ++index) {
    if (output->ellipsis == index) result.insert(result.end(), dims.ellipsis.begin(), dims.ellipsis.end());
    if (index == output->letters.size()) break;
    const auto found = dims.letters.find(output->letters[index]);
    if (found == dims.letters.end()) return;
    result.push_back(found->second);
  }
  context.set_shape(0, result);
}

DimExpression head_size(const DimExpression& hidden, std::optional<int64_t> heads) {
  return heads && *heads > 0 ? divide_exactly(hidden, *heads).value_or(DimExpression{}) : DimExpression{};
}

// Q, K, V as [batch, heads, sequence, head] or as [batch, sequence, heads * head] with the head counts in attributes.
void attention(NodeContext& context) {
  const auto rank = context.rank(0);
  if (rank != 3U && rank != 4U) return;
  const bool flat = *rank == 3;
  const auto q_heads = context.integer("q_num_heads"), kv_heads = context.integer("kv_num_heads");
  const auto heads = [&](size_t input, std::optional<int64_t> given) {
    return flat ? (given ? DimExpression(*given) : DimExpression{}) : context.dim(input, 1);
  };
  const auto head = [&](size_t input, std::optional<int64_t> given) {
    return flat ? head_size(context.dim(input, 2), given) : context.dim(input, 3);
  };
  const size_t time_axis = flat ? 1 : 2;
  const DimExpression batch = context.dim(0, 0), queries = context.dim(0, time_axis), value_head = head(2, kv_heads);
  const DimExpression past = context.has_input(4) ? context.dim(4, 2) : DimExpression(0);
  const DimExpression total = past + context.dim(1, time_axis);
  if (flat) {
    context.set_shape(0, DimExpressions{batch, queries, value_head * heads(0, q_heads)});
  } else {
    context.set_shape(0, DimExpressions{batch, heads(0, q_heads), queries, value_head});
  }
  context.set_shape(1, DimExpressions{batch, heads(1, kv_heads), total, head(1, kv_heads)});
  context.set_shape(2, DimExpressions{batch, heads(2, kv_heads), total, value_head});
  context.set_shape(3, DimExpressions{batch, heads(0, q_heads), queries, total});
}

// Heads are packed: query [batch, time, q_heads * d_k], key [.., kv_heads * d_k], value [.., kv_heads * d_v].
void linear_attention(NodeContext& context) {
  const auto q_heads = context.integer("q_num_heads"), kv_heads = context.integer("kv_num_heads");
  const DimExpression key_head = head_size(context.dim(1, 2), kv_heads),
                      value_head = head_size(context.dim(2, 2), kv_heads);
  const auto count = [](std::optional<int64_t> heads) { return heads ? DimExpression(*heads) : DimExpression{}; };
  context.set_shape(0, DimExpressions{context.dim(0, 0), context.dim(0, 1), value_head * count(q_heads)});
  context.set_shape(1, DimExpressions{context.dim(0, 0), count(kv_heads), key_head, value_head});
  // Without a past state its type is free; it is kept as the query is.
  const bool has_state = context.output_count() > 1;
  if (has_state && context.output(1).type.kind == TypeInfo::Kind::unknown)
    context.output(1).type = context.input(0).type;
}

// The last dimension is 1 for real and 2 for complex numbers.
void dft(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape || shape->size() < 2) return;
  constexpr int64_t kFirstWithAxisInput = 20;
  const bool axis_is_input = context.since_version() >= kFirstWithAxisInput;
  const auto from_input = context.has_input(2) ? context.scalar(2) : DimExpression(-2);
  const auto given = axis_is_input ? (from_input ? from_input->number() : std::nullopt) : context.integer("axis");
  const auto axis = given ? normalized_axis(*given, shape->size()) : std::nullopt;
  if (!axis) return context.set_shape(0, unknown_dims(shape->size()));
  DimExpressions result = *shape;
  if (context.has_input(1)) result[*axis] = context.scalar(1).value_or(DimExpression{});
  const bool onesided = context.integer_or("onesided", 0) != 0, inverse = context.integer_or("inverse", 0) != 0;
  if (onesided && !inverse) result[*axis] = floor_divide(result[*axis], 2) + 1;
  if (onesided && inverse && !context.has_input(1)) result[*axis] = {};
  result.back() = onesided && inverse ? 1 : 2;
  context.set_shape(0, result);
}

void stft(NodeContext& context) {
  const auto step = context.scalar(1);
  const auto length = context.has_input(3) ? context.scalar(3) : std::optional(context.dim(2, 0));
  if (!step || !length) return context.set_shape(0, unknown_dims(4));
  const bool onesided = context.integer_or("onesided", 1) != 0;
  const DimExpression frames = floor_divide(context.dim(0, 1) - *length, *step) + 1;
  context.set_shape(0, DimExpressions{context.dim(0, 0), frames, onesided ? floor_divide(*length, 2) + 1 : *length, 2});
}

constexpr std::array kMatrixRows = {
    ShapeRow{"Attention", attention},
    ShapeRow{"DFT", dft},
    ShapeRow{"Einsum", einsum},
    ShapeRow{"FlexAttention", attention},
    ShapeRow{"Gemm", gemm},
    ShapeRow{"LinearAttention", linear_attention},
    ShapeRow{"MatMul", matmul},
    ShapeRow{"MatMulInteger", matmul},
    ShapeRow{"QLinearMatMul", q_linear_matmul},
    ShapeRow{"STFT", stft},
};

}  // namespace

std::optional<DimExpressions> matmul_shape(const std::optional<DimExpressions>& a,
                                           const std::optional<DimExpressions>& b) {
  if (!a || !b || a->empty() || b->empty()) return std::nullopt;
  DimExpressions left = *a, right = *b;
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.emplace_back(1);
  DimExpressions result =
      broadcast(DimExpressions(left.begin(), left.end() - 2), DimExpressions(right.begin(), right.end() - 2));
  if (a->size() > 1) result.push_back(left[left.size() - 2]);
  if (b->size() > 1) result.push_back(right.back());
  return result;
}

std::span<const ShapeRow> matrix_rows() { return kMatrixRows; }

}  // namespace parallax
