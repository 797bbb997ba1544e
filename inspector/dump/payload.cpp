// SPDX-License-Identifier: Apache-2.0
// Writing and reading payloads. Reading trusts nothing: counts are held against the bytes that are left before memory
// is taken.
#include "inspector/dump/payload.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/dump/format.h"
#include "inspector/tensor/string_texts.h"

namespace parallax::dump {
namespace {

enum class NodeKind : uint8_t { absent = 0, tensor, sequence, optional, map };
constexpr int kMaxDepth = 64;

void write_strings(std::span<const std::string> strings, std::byte* target) {
  uint64_t end = 0;
  std::byte* characters = target + strings.size() * sizeof end;
  for (const std::string& text : strings) {
    std::memcpy(characters + end, text.data(), text.size());
    end += text.size();
    std::memcpy(target, &end, sizeof end);
    target += sizeof end;
  }
}

Result<Tensor> read_strings(const Shape& shape, std::span<const std::byte> bytes) {
  const auto count = static_cast<uint64_t>(shape.element_count());
  if (count > bytes.size() / sizeof(uint64_t))
    return corrupt_file(fmt::format("a tensor of strings has {} bytes; its shape {} needs 8 for each element",
                                    bytes.size(), shape.to_string()));
  ByteReader ends(bytes.first(static_cast<size_t>(count * sizeof(uint64_t))));
  const auto characters = bytes.subspan(static_cast<size_t>(count * sizeof(uint64_t)));
  Tensor tensor = PX_TRY(Tensor::allocate(DType::string, shape));
  PX_TRY(MemoryBudget::check(static_cast<int64_t>(characters.size()), "its texts"));
  uint64_t begin = 0;
  for (std::string& text : tensor.mutable_as<std::string>()) {
    const auto end = ends.number<uint64_t>();
    if (end < begin || end > characters.size())
      return corrupt_file(fmt::format("a string ends at {}; it must end between {} and {}, within its tensor", end,
                                      begin, characters.size()));
    text.assign(reinterpret_cast<const char*>(characters.data()) + begin, static_cast<size_t>(end - begin));
    begin = end;
  }
  if (begin != characters.size())
    return corrupt_file(
        fmt::format("a tensor of strings has {} characters; its strings have {}", characters.size(), begin));
  return with_texts_charged(std::move(tensor));
}

class TreeReader {
 public:
  TreeReader(std::span<const std::byte> tree, std::span<const std::byte> payload, std::shared_ptr<const void> owner)
      : reader_(tree), payload_(payload), owner_(std::move(owner)) {}

  Result<Value> read_all() {
    Value value = PX_TRY(node(0));
    if (!reader_.ok() || reader_.remaining() > 0) return broken();
    return value;
  }

 private:
  static Error broken() { return corrupt_file("the description of a nested value breaks its format"); }

  Result<Value> node(int depth) {
    if (depth > kMaxDepth) return corrupt_file("a value is nested more than 64 deep");
    const auto kind = reader_.number<NodeKind>();
    if (!reader_.ok()) return broken();
    switch (kind) {
      case NodeKind::absent:
        return Value();
      case NodeKind::tensor:
        return Value(PX_TRY(tensor()));
      case NodeKind::sequence:
        return sequence(depth);
      case NodeKind::optional: {
        OptionalValue optional{read_type(reader_), {}};
        const auto count = reader_.number<uint8_t>();
        if (count > 1) return broken();
        optional.item = PX_TRY(items(count, depth));
        return Value(std::move(optional));
      }
      case NodeKind::map:
        return map(depth);
    }
    return broken();
  }

  Result<Value> sequence(int depth) {
    SequenceValue sequence{read_type(reader_), {}};
    sequence.items = PX_TRY(items(reader_.number<uint64_t>(), depth));
    return Value(std::move(sequence));
  }

  Result<Value> map(int depth) {
    Value keys = PX_TRY(node(depth + 1));
    if (!keys.is_tensor() || keys.tensor().shape().rank() != 1) return broken();
    MapValue map{keys.tensor(), read_type(reader_), {}};
    const auto count = reader_.number<uint64_t>();
    if (count != static_cast<uint64_t>(keys.tensor().element_count())) return broken();
    map.values = PX_TRY(items(count, depth));
    return Value(std::move(map));
  }

  Result<std::vector<Value>> items(uint64_t count, int depth) {
    if (!reader_.ok() || count > reader_.remaining()) return broken();  // a node takes a byte at least
    std::vector<Value> values;
    for (uint64_t index = 0; index < count; ++index) values.push_back(PX_TRY(node(depth + 1)));
    return values;
  }

  Result<Tensor> tensor() {
    const auto dtype = dtype_from_number(reader_.number<uint8_t>());
    const auto rank = reader_.number<uint8_t>();
    if (!dtype.has_value() || rank > Shape::kMaxRank) return broken();
    std::vector<int64_t> dims(rank);
    for (int64_t& dim : dims) dim = reader_.number<int64_t>();
    const auto offset = reader_.number<uint64_t>();
    const auto size = reader_.number<uint64_t>();
    if (!reader_.ok() || offset % kAlignment != 0 || offset > payload_.size() || size > payload_.size() - offset)
      return broken();
    const Shape shape = PX_TRY(Shape::create(dims));
    return read_tensor(*dtype, shape, payload_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size)), owner_);
  }

  ByteReader reader_;
  std::span<const std::byte> payload_;
  std::shared_ptr<const void> owner_;
};

}  // namespace

uint64_t stored_bytes(const Tensor& tensor) {
  if (tensor.dtype() != DType::string) return tensor.size_bytes();
  uint64_t size = 0;
  for (const std::string& text : tensor.as<std::string>()) size += sizeof(uint64_t) + text.size();
  return size;
}

void write_tensor(const Tensor& tensor, std::byte* target) {
  if (tensor.dtype() == DType::string) {
    write_strings(tensor.as<std::string>(), target);
  } else if (tensor.size_bytes() > 0) {
    std::memcpy(target, tensor.view().data, tensor.size_bytes());
  }
}

PayloadLayout::PayloadLayout(const Value& value) {
  if (value.is_tensor()) {
    pieces_.push_back({&value.tensor(), 0});
    size_bytes_ = stored_bytes(value.tensor());
    return;
  }
  add_node(value);
  pieces_begin_ = round_up(sizeof(uint64_t) + tree_.size(), kAlignment);
  size_bytes_ = pieces_begin_ + pieces_bytes_;
}

void PayloadLayout::add_tensor(const Tensor& tensor) {
  const uint64_t offset = round_up(pieces_bytes_, kAlignment);
  const uint64_t size = stored_bytes(tensor);
  tree_.number(NodeKind::tensor);
  tree_.number(tensor.dtype());
  tree_.number(static_cast<uint8_t>(tensor.shape().rank()));
  for (const int64_t dim : tensor.shape()) tree_.number(dim);
  patches_.push_back(tree_.size());
  tree_.number(offset);
  tree_.number(size);
  pieces_.push_back({&tensor, offset});
  pieces_bytes_ = offset + size;
}

void PayloadLayout::add_node(const Value& value) {
  const auto add_items = [this](const std::vector<Value>& items) {
    for (const Value& item : items) add_node(item);
  };
  if (value.is_tensor()) {
    add_tensor(value.tensor());
  } else if (value.is_sequence()) {
    tree_.number(NodeKind::sequence);
    write_type(tree_, value.sequence().element_type);
    tree_.number(uint64_t{value.sequence().items.size()});
    add_items(value.sequence().items);
  } else if (value.is_optional()) {
    tree_.number(NodeKind::optional);
    write_type(tree_, value.optional().element_type);
    tree_.number(static_cast<uint8_t>(value.optional().item.size()));
    add_items(value.optional().item);
  } else if (value.is_map()) {
    tree_.number(NodeKind::map);
    add_tensor(value.map().keys);
    write_type(tree_, value.map().value_type);
    tree_.number(uint64_t{value.map().values.size()});
    add_items(value.map().values);
  } else {
    tree_.number(NodeKind::absent);
  }
}

void PayloadLayout::write(std::byte* target) const {
  if (size_bytes_ == 0) return;
  const uint64_t tree_bytes = tree_.size();
  if (tree_bytes > 0) {
    std::memcpy(target, &tree_bytes, sizeof tree_bytes);
    std::memcpy(target + sizeof tree_bytes, tree_.view().data(), tree_bytes);
  }
  for (size_t index = 0; index < pieces_.size(); ++index) {
    const uint64_t offset = pieces_begin_ + pieces_[index].offset;
    if (tree_bytes > 0) std::memcpy(target + sizeof tree_bytes + patches_[index], &offset, sizeof offset);
    write_tensor(*pieces_[index].tensor, target + offset);
  }
}

Result<Tensor> read_tensor(DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                           const std::shared_ptr<const void>& owner) {
  if (dtype == DType::string) return read_strings(shape, bytes);
  if (dtype == DType::undefined) return corrupt_file("a tensor without an element type; it must have one");
  if (bytes.size() != byte_size(dtype, shape.element_count()))
    return corrupt_file(fmt::format("a tensor {}{} has {} bytes; it must have {}", name_of(dtype), shape.to_string(),
                                    bytes.size(), byte_size(dtype, shape.element_count())));
  if (dtype == DType::bool_ &&
      std::ranges::any_of(bytes, [](std::byte element) { return std::to_integer<int>(element) > 1; })) {
    return corrupt_file("a bool element is neither 0 nor 1; it must be one of them");
  }
  return Tensor::wrap(dtype, shape, std::shared_ptr<const std::byte>(owner, bytes.data()));
}

Result<Value> read_tree(std::span<const std::byte> payload, const std::shared_ptr<const void>& owner) {
  ByteReader head(payload);
  const auto tree = head.take(head.number<uint64_t>());
  if (!head.ok()) return corrupt_file("a nested value is shorter than its description");
  return TreeReader(tree, payload, owner).read_all();
}

}  // namespace parallax::dump
