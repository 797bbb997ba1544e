// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression: boxes picked one after the other, by the host for every device.
#include <algorithm>
#include <cmath>
#include <vector>

#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

// Corners in any order, or center and size.
Box box_of(const float* values, bool is_center) {
  if (is_center) {
    return {values[1] - values[3] / 2, values[0] - values[2] / 2, values[1] + values[3] / 2, values[0] + values[2] / 2};
  }
  return {std::min(values[0], values[2]), std::min(values[1], values[3]), std::max(values[0], values[2]),
          std::max(values[1], values[3])};
}

// The boxes kept so far, coordinate by coordinate: each candidate is compared with all of them.
class KeptBoxes {
 public:
  int64_t count() const { return static_cast<int64_t>(y1_.size()); }

  void add(const Box& box) {
    y1_.push_back(box.y1);
    x1_.push_back(box.x1);
    y2_.push_back(box.y2);
    x2_.push_back(box.x2);
    area_.push_back(box.area());
  }

  // Tells whether the intersection of the box and one of these, over their union, is beyond `overlap`.
  bool hide(const Box& box, float overlap) const {
    constexpr int64_t kBoxesAtOnce = 64;
    for (int64_t first = 0; first < count(); first += kBoxesAtOnce) {
      if (hides(box, overlap, first, std::min(count(), first + kBoxesAtOnce))) return true;
    }
    return false;
  }

 private:
  bool hides(const Box& box, float overlap, int64_t first, int64_t last) const {
    int32_t found = 0;
    const float *const y1 = y1_.data(), *const x1 = x1_.data(), *const y2 = y2_.data(), *const x2 = x2_.data();
    const float* const areas = area_.data();
    vectorized(first, last, [=, &found](int64_t begin, int64_t end) {
      const float area = box.area();
      int32_t any = 0;
      for (int64_t i = begin; i < end; ++i) {
        const float height = std::max(0.0F, std::min(box.y2, y2[i]) - std::max(box.y1, y1[i]));
        const float width = std::max(0.0F, std::min(box.x2, x2[i]) - std::max(box.x1, x1[i]));
        const float common = height * width;
        const float all = area + areas[i] - common;
        const float ratio = common / all;
        any |= static_cast<int32_t>((all > 0 ? ratio : 0.0F) > overlap);
      }
      found = any;
    });
    return found != 0;
  }

  std::vector<float> y1_, x1_, y2_, x2_, area_;
};

struct Candidate {
  float score;
  int64_t index;
};

// The highest scores first, of equal ones the first; sorted only as far as they are asked for.
class Candidates {
 public:
  Candidates(const float* scores, int64_t count, const float* threshold) {
    for (int64_t i = 0; i < count; ++i) {
      if (threshold == nullptr || scores[i] > *threshold) all_.push_back({scores[i], i});
    }
  }

  const Candidate* next() {
    if (taken_ == sorted_ && !sort_more()) return nullptr;
    return &all_[taken_++];
  }

 private:
  static bool comes_before(const Candidate& a, const Candidate& b) {
    return a.score > b.score || (!(b.score > a.score) && a.index < b.index);
  }

  bool sort_more() {
    constexpr size_t kFirst = 1024;
    if (sorted_ == all_.size()) return false;
    const auto begin = all_.begin() + static_cast<ptrdiff_t>(sorted_);
    const size_t wanted = std::max(kFirst, 3 * sorted_);
    sorted_ = all_.size() - sorted_ < 2 * wanted ? all_.size() : sorted_ + wanted;
    const auto end = all_.begin() + static_cast<ptrdiff_t>(sorted_);
    if (end != all_.end()) std::nth_element(begin, end, all_.end(), comes_before);
    std::sort(begin, end, comes_before);
    return true;
  }

  std::vector<Candidate> all_;
  size_t sorted_ = 0, taken_ = 0;
};

// The request, the same for every class of every batch.
struct Suppression {
  int64_t boxes = 0;  // of a batch
  int64_t limit = 0;  // of boxes kept
  float overlap = 0.0F;
  const float* threshold = nullptr;  // null: none
  bool is_center = false;

  std::vector<int64_t> kept(const float* box_values, const float* scores) const {
    Candidates candidates(scores, boxes, threshold);
    KeptBoxes boxes_kept;
    std::vector<int64_t> indices;
    while (boxes_kept.count() < limit) {
      const Candidate* const candidate = candidates.next();
      if (candidate == nullptr) break;
      const Box box = box_of(box_values + candidate->index * 4, is_center);
      if (boxes_kept.hide(box, overlap)) continue;
      boxes_kept.add(box);
      indices.push_back(candidate->index);
    }
    return indices;
  }
};

template <class Device>
Status non_max_suppression(OpContext<Device>& op) {
  const Shape& boxes = op.input(0).shape();
  const Shape& scores = op.input(1).shape();
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes[2] != 4 || scores[0] != boxes[0] || scores[2] != boxes[1])
    return wrong_input(op, 0, "be [batch,n,4], and scores, {}, be [batch,classes,n]", scores.to_string());
  Suppression asked;
  asked.boxes = boxes[1];
  asked.limit = op.has_input(2) ? PX_TRY(op.integer_of_input(2)) : 0;
  asked.overlap = op.has_input(3) ? static_cast<float>(PX_TRY(op.real_of_input(3))) : 0.0F;
  const float threshold = op.has_input(4) ? static_cast<float>(PX_TRY(op.real_of_input(4))) : 0.0F;
  if (op.has_input(4)) asked.threshold = &threshold;
  asked.is_center = op.integer("center_point_box") != 0;
  const float* box_values = data_as<float>(op.input(0));
  const float* score_values = data_as<float>(op.input(1));
  const int64_t classes = scores[1];
  std::vector<std::vector<int64_t>> kept(static_cast<size_t>(scores[0] * classes));
  parallel_for(scores[0] * classes, boxes[1] * 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      kept[static_cast<size_t>(row)] =
          asked.kept(box_values + row / classes * boxes[1] * 4, score_values + row * boxes[1]);
    }
  });
  Ints selected;
  for (int64_t row = 0; row < std::ssize(kept); ++row) {
    for (const int64_t index : kept[static_cast<size_t>(row)]) {
      for (const int64_t value : {row / classes, row % classes, index}) selected.push_back(value);
    }
  }
  Tensor y = PX_TRY(Tensor::allocate(DType::int64, Shape{selected.size() / 3, 3}));
  std::copy(selected.begin(), selected.end(), writable(y).template as<int64_t>());
  op.set_output(0, std::move(y));
  return {};
}

template <class Device>
constexpr KernelRow<Device> kDetectionRows[] = {
    reads_on_host<Device>({0, 1, 2, 3, 4},
                          {"NonMaxSuppression", dtype_bit(DType::float32), non_max_suppression<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> detection_rows() {
  return kDetectionRows<CompiledDevice>;
}

}  // namespace parallax::runtime
