// select: the places of the elements that are not zero, in order. How many there are is known on the host.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device/blocks.h"
#include "runtime/device/elements.h"
#include "runtime/device/queue_cpu.h"

namespace parallax::runtime {

template <class Device>
struct Selection {
  Elements<Device, const int64_t> places;
  int64_t count = 0;
  std::shared_ptr<const void> owner;
};

template <class C>
Result<Selection<Cpu>> select(Queue<Cpu>&, const TensorView& in) {
  auto places = std::make_shared<std::vector<int64_t>>();
  for (int64_t i = 0; i < in.element_count(); ++i) {
    if (load_element<C>(in.dtype, in.data, i) != C(0)) places->push_back(i);
  }
  const Elements<Cpu, const int64_t> elements{places->data()};
  const auto count = static_cast<int64_t>(places->size());
  return Selection<Cpu>{elements, count, std::move(places)};
}

}  // namespace parallax::runtime
