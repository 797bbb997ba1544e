// Images whose channels lie side by side, a group after the other.
#include "runtime/ops/host_taps.h"

#include "inspector/base/thread_pool.h"
#include "runtime/device/turn.h"

namespace parallax::runtime {

template <class C>
void group_channels(const C* image, int64_t samples, int64_t channels, int64_t plane, C* grouped) {
  constexpr int64_t kPart = 1024, kGroup = kChannelGroup<C>;
  const int64_t parts = (plane + kPart - 1) / kPart, groups = channel_groups<C>(channels);
  parallel_for(samples * groups * parts, kPart * kGroup / 4, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const int64_t group = number / parts, first = number % parts * kPart;
      const int64_t count = std::min(kPart, plane - first);
      const int64_t channel = group % groups * kGroup, width = std::min(kGroup, channels - channel);
      C* const target = grouped + (group * plane + first) * kGroup;
      if (width < kGroup) std::fill_n(target, count * kGroup, C(0));
      turn(target, kGroup, image + (group / groups * channels + channel) * plane + first, plane, count, width);
    }
  });
}

template void group_channels(const float*, int64_t, int64_t, int64_t, float*);
template void group_channels(const double*, int64_t, int64_t, int64_t, double*);

}  // namespace parallax::runtime
