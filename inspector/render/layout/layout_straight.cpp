// SPDX-License-Identifier: Apache-2.0
// Straight wires: a wire that passes several layers takes one line through all that leave it room for that line. Order
// and distances within the layers stay as they are.
#include <algorithm>
#include <limits>
#include <optional>

#include "inspector/render/layout/layout_internal.h"

namespace parallax::layout {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Interval {
  double low = -kInfinity, high = kInfinity;
  bool holds(double x) const { return x >= low && x <= high; }
};

class Straightener {
 public:
  Straightener(const Layers& layers, const LayoutOptions& options, std::vector<double>& middle)
      : layers_(layers), options_(options), middle_(middle), location_(layers.layer.size(), 0) {
    for (const auto& vertices : layers.vertices) {
      for (size_t i = 0; i < vertices.size(); ++i) location_[static_cast<size_t>(vertices[i])] = i;
    }
  }

  void straighten(const Layers::Chain& chain) {
    line_.clear();
    const std::optional<double> source = end_of(chain.first, true);
    for (int32_t i = 0; i < chain.count; ++i) line_.push_back(chain.first + i);
    const std::optional<double> target = end_of(chain.first + chain.count - 1, false);
    size_t begin = 0;
    Interval common;
    std::optional<double> wish = source;
    for (size_t i = 0; i < line_.size(); ++i) {
      const Interval own = room_of(line_[i]);
      const Interval both{std::max(common.low, own.low), std::min(common.high, own.high)};
      if (both.low <= both.high) {
        common = both;
        continue;
      }
      wish = set(begin, i, common, wish);
      begin = i;
      common = own;
    }
    const bool is_bent = begin > 0 || !wish.has_value();
    set(begin, line_.size(), common, is_bent && target.has_value() && common.holds(*target) ? target : wish);
  }

 private:
  // The position that a box at the wire's end asks for. A port asks for none: it joins the line.
  std::optional<double> end_of(int32_t bend, bool above) {
    const auto segments = above ? layers_.up.of(bend) : layers_.down.of(bend);
    if (segments.size() != 1) return std::nullopt;
    const Segment& segment = layers_.segments[static_cast<size_t>(segments.front())];
    const int32_t vertex = above ? segment.upper : segment.lower;
    if (layers_.width[static_cast<size_t>(vertex)] == 0) {
      line_.push_back(vertex);
      return std::nullopt;
    }
    return middle_[static_cast<size_t>(vertex)] + (above ? segment.upper_x : segment.lower_x);
  }

  Interval room_of(int32_t vertex) const {
    const auto v = static_cast<size_t>(vertex);
    const auto& vertices = layers_.vertices[static_cast<size_t>(layers_.layer[v])];
    const size_t location = location_[v];
    Interval room;
    if (location > 0) {
      const int32_t left = vertices[location - 1];
      room.low = middle_[static_cast<size_t>(left)] + distance_between(layers_, left, vertex, options_);
    }
    if (location + 1 < vertices.size()) {
      const int32_t right = vertices[location + 1];
      room.high = middle_[static_cast<size_t>(right)] - distance_between(layers_, vertex, right, options_);
    }
    if (room.low > room.high) room = {middle_[v], middle_[v]};  // by a rounding
    return room;
  }

  double set(size_t begin, size_t end, const Interval& room, std::optional<double> wish) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += middle_[static_cast<size_t>(line_[i])];
    const double x = std::clamp(wish.value_or(sum / static_cast<double>(end - begin)), room.low, room.high);
    for (size_t i = begin; i < end; ++i) middle_[static_cast<size_t>(line_[i])] = x;
    return x;
  }

  const Layers& layers_;
  const LayoutOptions& options_;
  std::vector<double>& middle_;
  std::vector<size_t> location_;  // of each vertex in its layer
  std::vector<int32_t> line_;
};

}  // namespace

void straighten_wires(const Layers& layers, const LayoutOptions& options, std::vector<double>& middle) {
  // Edges of one wire share the upper part of its chain: the longest stands for all.
  std::vector<Layers::Chain> wires;
  for (const Layers::Chain& chain : layers.chains) {
    if (chain.count > 0) wires.push_back(chain);
  }
  std::ranges::sort(wires, [](const Layers::Chain& a, const Layers::Chain& b) {
    return a.first != b.first ? a.first < b.first : a.count > b.count;
  });
  const auto is_same = [](const Layers::Chain& a, const Layers::Chain& b) { return a.first == b.first; };
  wires.erase(std::unique(wires.begin(), wires.end(), is_same), wires.end());
  Straightener straightener(layers, options, middle);
  for (const Layers::Chain& wire : wires) straightener.straighten(wire);
}

}  // namespace parallax::layout
