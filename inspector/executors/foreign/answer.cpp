// SPDX-License-Identifier: Apache-2.0
// Reads the files of answers.
#include "inspector/executors/foreign/answer.h"

#include <algorithm>

#include "inspector/dump/convert/origin.h"

namespace parallax::foreign {
namespace {

// A name that is a path, written as paths are, is one; any other is a name of the main graph.
ValuePath path_of(const std::string& name) {
  auto parsed = parse_value_path(name);
  if (parsed.ok() && to_string(*parsed) == name) return parsed.take();
  return {{}, name};
}

}  // namespace

Result<Answer> Answer::open(const std::string& file, const Graph& graph) {
  Answer answer;
  if (file.ends_with(".plx")) {
    PX_TRY(answer.read_dump(file));
    return answer;
  }
  for (dump::OriginValue& value : PX_TRY(dump::read_origin(file, &graph)))
    answer.add(path_of(value.named.name), {-1, std::move(value.named.value), std::nullopt});
  return answer;
}

Status Answer::read_dump(const std::string& file) {
  dump_ = PX_TRY(DumpReader::open(file));
  const auto entries = dump_->entries();
  for (size_t index = 0; index < entries.size(); ++index) {
    const DumpEntry& entry = entries[index];
    if (!entry.absence.has_value() && entry.level != CaptureLevel::all) continue;
    add(PX_TRY_CONTEXT(file, parse_value_path(entry.path)), {static_cast<int32_t>(index), Value(), entry.absence});
  }
  for (const DumpGraph& graph : dump_->graphs()) {
    if (graph.is_executed) provenance_ = graph.provenance;
  }
  return {};
}

void Answer::add(ValuePath path, Stored stored) {
  std::erase_if(path.frames,
                [](const Frame& frame) { return frame.kind == Frame::Kind::graph || frame.kind == Frame::Kind::step; });
  const size_t index = stored_.size();
  stored_.push_back(std::move(stored));
  if (path.frames.empty()) {
    main_[path.name] = index;
    return;
  }
  const auto [known, is_new] = body_paths_.try_emplace(to_string(path), index);
  std::vector<BodyValue>& values = bodies_[path.frames.front().node];
  if (is_new) {
    values.push_back({std::move(path), index});
    return;
  }
  std::ranges::find(values, known->second, &BodyValue::stored)->stored = index;
  known->second = index;
}

Result<Value> Answer::load(size_t stored) const {
  const Stored& found = stored_[stored];
  if (found.absence.has_value()) return Value();
  return dump_ == nullptr ? found.value : dump_->load(found.entry);
}

bool Answer::has(std::string_view name) const {
  const auto found = main_.find(name);
  return found != main_.end() && !stored_[found->second].absence.has_value();
}

Result<Value> Answer::value(const std::string& name) const {
  const auto found = main_.find(name);
  return found == main_.end() ? Value() : load(found->second);
}

std::optional<Absence> Answer::absence(const std::string& name, const std::string& node) const {
  const auto found = main_.find(name);
  if (found != main_.end() && stored_[found->second].absence.has_value()) return stored_[found->second].absence;
  const auto fused =
      std::ranges::find_if(provenance_, [&](const auto& pair) { return pair.second == node && pair.first != node; });
  if (fused == provenance_.end()) return std::nullopt;
  return Absence{Absence::Kind::fused, fused->first};
}

void Answer::sort_bodies(dump::ExecutionOrder& order) {
  for (auto& [node, values] : bodies_) {
    std::vector<std::pair<std::vector<int64_t>, BodyValue>> located;
    for (BodyValue& value : values) located.emplace_back(order.location_of(value.path), std::move(value));
    std::ranges::stable_sort(
        located, {}, [](const auto& entry) -> const auto& { return entry.first; });
    for (size_t index = 0; index < values.size(); ++index) values[index] = std::move(located[index].second);
  }
}

std::span<const Answer::BodyValue> Answer::bodies_of(const std::string& node) const {
  const auto found = bodies_.find(node);
  return found == bodies_.end() ? std::span<const BodyValue>() : std::span<const BodyValue>(found->second);
}

}  // namespace parallax::foreign
