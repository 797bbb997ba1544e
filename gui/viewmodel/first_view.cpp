// SPDX-License-Identifier: Apache-2.0
// Tries positions: zooms, and for each the origins that put an edge of the canvas into a gap between boxes.
#include "gui/viewmodel/first_view.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace parallax {
namespace {

constexpr int kZooms = 12;
constexpr float kGap = 6;  // pixels between a box and the border of the canvas

struct Span {
  float begin, end;
};

struct Counts {
  int missed = 0;  // boxes of `first` that are not whole in sight
  int cut = 0;
  float zoom = 1;
  int whole = 0;
};

bool is_better(const Counts& a, const Counts& b) {
  return std::tuple(a.missed, a.cut, -a.zoom, -a.whole) < std::tuple(b.missed, b.cut, -b.zoom, -b.whole);
}

class Search {
 public:
  Search(const Scene& scene, std::span<const int32_t> first, const FirstViewLimits& limits)
      : scene_(scene), limits_(limits), first_(first.begin(), first.end()) {
    top_ = first_.empty() ? 0 : at(first_.front()).y;
    for (const int32_t box : first_) top_ = std::min(top_, at(box).y);
    const float reach = 2 * limits.height / limits.least_zoom;
    for (const SceneBox& box : scene.boxes) {
      if (!box.is_open && box.y < top_ + reach && box.y + box.height > top_ - reach) near_.push_back(&box);
    }
  }

  Camera best() {
    for (int step = 0; step <= kZooms; ++step) {
      const float share = static_cast<float>(step) / kZooms;
      try_zoom(limits_.greatest_zoom + (limits_.least_zoom - limits_.greatest_zoom) * share);
    }
    return best_;
  }

 private:
  const SceneBox& at(int32_t box) const { return scene_.boxes[static_cast<size_t>(box)]; }

  // Inputs above the first nodes are shown where there is room for both.
  void try_zoom(float zoom) {
    const float width = limits_.width / zoom, height = limits_.height / zoom, gap = kGap / zoom;
    std::vector<float> tops = {-gap};
    if (top_ > height / 3) tops.push_back(top_ - height / 4);
    if (first_.empty()) return try_at(zoom, (scene_.width - width) / 2, -gap);
    for (const float y : tops) {
      if (scene_.width + 2 * gap <= width) {
        try_at(zoom, (scene_.width - width) / 2, y);
        continue;
      }
      const SceneBox& lead = at(first_.front());
      const float middle = lead.x + lead.width / 2 - width / 2;
      try_at(zoom, middle, y);
      for (const SceneBox* box : near_) {
        if (box->y > y + height) continue;
        for (const float x :
             {box->x - gap, box->x + box->width + gap, box->x - gap - width, box->x + box->width + gap - width}) {
          if (std::abs(x - middle) < width / 2) try_at(zoom, x, y);
        }
      }
    }
  }

  void try_at(float zoom, float x, float y) {
    const Span across{x, x + limits_.width / zoom}, down{y, y + limits_.height / zoom};
    Counts counts;
    counts.zoom = zoom;
    for (const SceneBox* box : near_) {
      const bool is_outside = box->x >= across.end || box->x + box->width <= across.begin || box->y >= down.end ||
                              box->y + box->height <= down.begin;
      if (is_outside) continue;
      (is_whole(*box, across, down) ? counts.whole : counts.cut) += 1;
    }
    for (const int32_t box : first_) counts.missed += !is_whole(at(box), across, down);
    if (is_found_ && !is_better(counts, counts_)) return;
    is_found_ = true;
    counts_ = counts;
    best_ = {x, y, zoom};
  }

  static bool is_whole(const SceneBox& box, Span across, Span down) {
    return box.x >= across.begin && box.x + box.width <= across.end && box.y >= down.begin &&
           box.y + box.height <= down.end;
  }

  const Scene& scene_;
  FirstViewLimits limits_;
  std::vector<int32_t> first_;
  std::vector<const SceneBox*> near_;
  float top_ = 0;
  bool is_found_ = false;
  Counts counts_;
  Camera best_;
};

}  // namespace

Camera view_of_beginning(const Scene& scene, std::span<const int32_t> first, const FirstViewLimits& limits) {
  return Search(scene, first, limits).best();
}

}  // namespace parallax
