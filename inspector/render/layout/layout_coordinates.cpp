// SPDX-License-Identifier: Apache-2.0
// Coordinates within layers: each vertex wants to stand below (or above) what it is joined to; order and distances are
// kept by isotonic regression, solved exactly by pooling adjacent violators.
#include <algorithm>

#include "inspector/render/layout/layout_internal.h"

namespace parallax::layout {

double distance_between(const Layers& layers, int32_t left, int32_t right, const LayoutOptions& options) {
  const double gap = layers.is_bend(left) && layers.is_bend(right) ? static_cast<double>(options.wire_gap)
                     : layers.is_bend(left) || layers.is_bend(right)
                         ? (static_cast<double>(options.wire_gap) + static_cast<double>(options.box_gap)) / 2
                         : static_cast<double>(options.box_gap);
  return (layers.width[static_cast<size_t>(left)] + layers.width[static_cast<size_t>(right)]) / 2 + gap;
}

namespace {

// How much a segment wants to be upright: long wires more than short ones.
double pull_of(const Layers& layers, const Segment& segment) {
  const int bends = (layers.is_bend(segment.upper) ? 1 : 0) + (layers.is_bend(segment.lower) ? 1 : 0);
  constexpr double kPull[] = {1, 2, 8};  // Gansner and others 1993, section 4: weights of edges by their ends
  return kPull[bends];
}

struct Block {
  double weighted_sum = 0;
  double weight = 0;
  size_t count = 0;
  double value() const { return weighted_sum / weight; }
};

class Coordinates {
 public:
  Coordinates(const Layers& layers, const LayoutOptions& options) : layers_(layers), options_(options) {
    middle_.assign(layers.layer.size(), 0);
    for (const auto& vertices : layers.vertices) {
      double x = 0;
      for (size_t i = 0; i < vertices.size(); ++i) {
        if (i > 0) x += distance_between(layers, vertices[i - 1], vertices[i], options);
        middle_[static_cast<size_t>(vertices[i])] = x;
      }
      for (int32_t vertex : vertices) middle_[static_cast<size_t>(vertex)] -= x / 2;
    }
  }

  enum class Look : uint8_t { up, down, both };

  void sweep(bool downward, Look look) {
    const size_t count = layers_.vertices.size();
    for (size_t step = 0; step < count; ++step)
      assign_layer(layers_.vertices[downward ? step : count - 1 - step], look);
  }
  std::vector<double> take() { return std::move(middle_); }

 private:
  void add_wishes(int32_t vertex, bool above, double& sum, double& weight) const {
    for (int32_t s : above ? layers_.up.of(vertex) : layers_.down.of(vertex)) {
      const Segment& segment = layers_.segments[static_cast<size_t>(s)];
      const double pull = pull_of(layers_, segment);
      const auto other = static_cast<size_t>(above ? segment.upper : segment.lower);
      const double shift = segment.upper_x - segment.lower_x;
      sum += pull * (middle_[other] + (above ? shift : -shift));
      weight += pull;
    }
  }

  void assign_layer(const std::vector<int32_t>& vertices, Look look) {
    blocks_.clear();
    offsets_.clear();
    double offset = 0;
    for (size_t i = 0; i < vertices.size(); ++i) {
      const int32_t vertex = vertices[i];
      if (i > 0) offset += distance_between(layers_, vertices[i - 1], vertex, options_);
      offsets_.push_back(offset);
      constexpr double kStay = 0.01;  // a vertex without neighbors on this side stays, unless others need its position
      double weight = kStay;
      double sum = kStay * middle_[static_cast<size_t>(vertex)];
      if (look != Look::down) add_wishes(vertex, true, sum, weight);
      if (look != Look::up) add_wishes(vertex, false, sum, weight);
      blocks_.push_back({sum - weight * offset, weight, 1});
      while (blocks_.size() > 1 && blocks_[blocks_.size() - 2].value() > blocks_.back().value()) {
        const Block last = blocks_.back();
        blocks_.pop_back();
        blocks_.back().weighted_sum += last.weighted_sum;
        blocks_.back().weight += last.weight;
        blocks_.back().count += last.count;
      }
    }
    size_t at = 0;
    for (const Block& block : blocks_) {
      const double value = block.value();
      for (size_t i = 0; i < block.count; ++i, ++at) {
        middle_[static_cast<size_t>(vertices[at])] = value + offsets_[at];
      }
    }
  }

  const Layers& layers_;
  const LayoutOptions& options_;
  std::vector<double> middle_;
  std::vector<Block> blocks_;
  std::vector<double> offsets_;
};

}  // namespace

std::vector<double> vertex_middles(const Layers& layers, const LayoutOptions& options) {
  Coordinates coordinates(layers, options);
  for (int sweep = 0; sweep < options.coordinate_sweeps; ++sweep) {
    const bool downward = sweep % 2 == 0;
    const bool is_last = sweep + 4 >= options.coordinate_sweeps;
    coordinates.sweep(downward, is_last    ? Coordinates::Look::both
                                : downward ? Coordinates::Look::up
                                           : Coordinates::Look::down);
  }
  std::vector<double> middle = coordinates.take();
  straighten_wires(layers, options, middle);
  return middle;
}

}  // namespace parallax::layout
