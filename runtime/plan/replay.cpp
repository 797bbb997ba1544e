// SPDX-License-Identifier: Apache-2.0
// Which runs are recorded, and the proof that a recording does what the plain run does.
#include "runtime/plan/replay.h"

#include <algorithm>
#include <utility>

#include "runtime/plan/platform.h"

namespace parallax::runtime {
namespace {

bool is_same(const Value& a, const Value& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a.is_absent() && b.is_absent();
  const Tensor& x = a.tensor();
  const Tensor& y = b.tensor();
  if (x.dtype() == DType::string || x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
  return std::ranges::equal(x.view().bytes(), y.view().bytes());
}

}  // namespace

// Types and dimensions of all inputs, and the content of those on the host; none where something else than a tensor is
// among them, or too much of it.
std::optional<Replays::Form> Replays::form_of(const ReplayInputs& inputs) {
  Form form;
  for (size_t index = 0; index < inputs.values.size(); ++index) {
    const Value& input = inputs.values[index];
    if (input.is_absent()) {
      form.numbers.push_back(-1);
      continue;
    }
    if (!input.is_tensor() || input.tensor().dtype() == DType::string) return std::nullopt;
    const Tensor& tensor = input.tensor();
    form.numbers.push_back(static_cast<int64_t>(tensor.dtype()));
    form.numbers.push_back(static_cast<int64_t>(tensor.shape().rank()));
    form.numbers.insert(form.numbers.end(), tensor.shape().begin(), tensor.shape().end());
    if (inputs.stays_on_host(index)) {
      for (const std::byte byte : tensor.view().bytes()) form.numbers.push_back(std::to_integer<int64_t>(byte));
    } else {
      form.bytes += tensor.size_bytes();
    }
  }
  if (form.bytes > kMostInputBytes) return std::nullopt;
  return form;
}

Replays::Entry* Replays::find(const Form& form) {
  const auto found = std::ranges::find(
      entries_, form.numbers, [](const Entry& entry) -> const auto& { return entry.form.numbers; });
  return found == entries_.end() ? nullptr : &*found;
}

Replays::Entry& Replays::used(Form form) {
  Entry* entry = find(form);
  if (entry == nullptr && entries_.size() >= kMostForms) {
    const auto age = [](const Entry& each) { return std::pair(each.replay != nullptr, each.last_use); };
    entries_.erase(std::ranges::min_element(entries_, {}, age));
  }
  if (entry == nullptr) entry = &entries_.emplace_back(Entry{std::move(form), nullptr, false, 0, 0});
  entry->use_before = std::exchange(entry->last_use, ++uses_);
  return *entry;
}

bool Replays::make_room(const Entry& entry) {
  while (true) {
    size_t count = 0, bytes = 0;
    Entry* oldest = nullptr;
    for (Entry& each : entries_) {
      if (each.replay == nullptr) continue;
      ++count;
      bytes += each.form.bytes;
      if (oldest == nullptr || each.last_use < oldest->last_use) oldest = &each;
    }
    if (count < kMostReplays && bytes + entry.form.bytes <= kMostInputBytes) return true;
    if (oldest == nullptr || oldest->last_use > entry.use_before) return false;
    oldest->replay.reset();
  }
}

Result<std::optional<std::vector<Value>>> Replays::run(const ReplayInputs& inputs) {
  using Outputs = std::optional<std::vector<Value>>;
  if (entries_.empty()) return Outputs();
  const auto form = form_of(inputs);
  Entry* entry = form.has_value() ? find(*form) : nullptr;
  if (entry == nullptr || entry->replay == nullptr) return Outputs();
  entry->last_use = ++uses_;
  return entry->replay->run(inputs.values);
}

void Replays::learn(Platform& platform, const ReplayInputs& inputs, std::span<const Value> outputs, bool is_planned,
                    const DeviceRun& run) {
  auto form = form_of(inputs);
  if (!form.has_value()) return;
  Entry& entry = used(*std::move(form));
  if (!is_planned || entry.is_refused || entry.replay != nullptr || entry.use_before == 0 || !make_room(entry)) return;
  entry.is_refused = true;
  std::unique_ptr<Replay> replay = platform.record(inputs, run);
  if (replay == nullptr) return;
  const auto again = replay->run(inputs.values);
  const auto is_same_on_host = [&](const Value& a, const Value& b) {
    const auto x = platform.to_host(a), y = platform.to_host(b);
    return x.ok() && y.ok() && is_same(*x, *y);
  };
  if (!again.ok() || !again->has_value() || !std::ranges::equal(**again, outputs, is_same_on_host)) return;
  entry.replay = std::move(replay);
  entry.is_refused = false;
}

}  // namespace parallax::runtime
