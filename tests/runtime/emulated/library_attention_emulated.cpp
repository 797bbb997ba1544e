// SPDX-License-Identifier: Apache-2.0
// Attention as the emulated device has it in place of cuDNN's: by plain loops of the host.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/gpu/attention/library_attention.h"
#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax::runtime {
namespace {

Result<float> element(DType dtype, const std::byte* data, int64_t index) {
  const size_t bytes = byte_size(dtype, 1);
  return load_element<float>(dtype, PX_TRY(emulation::true_address(data + bytes * static_cast<size_t>(index), bytes)),
                             0);
}

int64_t location(const MatrixOffsets& locations, int64_t matrix, int64_t row, int64_t column) {
  return locations.offsets[matrix] + row * locations.row + column * locations.column;
}

float rounded(DType dtype, float value) {
  alignas(double) std::byte memory[sizeof(double)];
  store_block<float>(dtype, memory, 0, 1, &value);
  return load_element<float>(dtype, memory, 0);
}

Result<std::vector<float>> weights_of(const LibraryAttention& attention, int64_t matrix, int64_t query) {
  const AttentionProblem& problem = attention.problem;
  std::vector<float> weights(static_cast<size_t>(problem.keys));
  for (int64_t key = 0; key < problem.keys; ++key) {
    float sum = 0;
    for (int64_t i = 0; i < problem.size; ++i) {
      sum += PX_TRY(element(attention.dtype, attention.q, location(problem.q, matrix, query, i))) *
             PX_TRY(element(attention.dtype, attention.k, location(problem.k, matrix, i, key)));
    }
    float& score = weights[static_cast<size_t>(key)];
    score = static_cast<float>(problem.scale) * sum;
    if (attention.added != nullptr) {
      const int64_t at = location(attention.added_locations, matrix, query, key);
      score += PX_TRY(element(attention.added_dtype, attention.added, at));
    }
  }
  const float highest = *std::max_element(weights.begin(), weights.end());
  const auto hidden = emulated_library().hidden_queries;
  if (hidden != EmulatedLibrary::HiddenQueries::no_numbers && highest == -std::numeric_limits<float>::infinity()) {
    const bool is_zero = hidden == EmulatedLibrary::HiddenQueries::zeros;
    return std::vector<float>(weights.size(), is_zero ? 0.0F : 1.0F / static_cast<float>(weights.size()));
  }
  float sum = 0;
  for (float& weight : weights) sum += weight = std::exp(weight - highest);
  for (float& weight : weights) weight = rounded(attention.dtype, weight / sum);
  return weights;
}

Status attend_on_host(const LibraryAttention& attention) {
  const AttentionProblem& problem = attention.problem;
  const size_t bytes = byte_size(attention.dtype, 1);
  for (int64_t i = 0; i < problem.batch() * problem.queries; ++i) {
    const int64_t matrix = i / problem.queries, query = i % problem.queries;
    const std::vector<float> weights = PX_TRY(weights_of(attention, matrix, query));
    for (int64_t column = 0; column < problem.value_size; ++column) {
      float sum = 0;
      for (int64_t key = 0; key < problem.keys; ++key) {
        sum += weights[static_cast<size_t>(key)] *
               PX_TRY(element(attention.dtype, attention.v, location(problem.v, matrix, key, column)));
      }
      const auto at = static_cast<size_t>(location(problem.y, matrix, query, column));
      std::byte* target = PX_TRY(emulation::true_address(attention.y + bytes * at, bytes));
      store_block<float>(attention.dtype, target, 0, 1, &sum);
    }
  }
  return {};
}

}  // namespace

template <>
Result<bool> library_attention(Queue<Emulated>& queue, const LibraryAttention& attention) {
  ++emulated_library().attentions;
  queue.perform([attention] { return attend_on_host(attention); });
  return true;
}

}  // namespace parallax::runtime
