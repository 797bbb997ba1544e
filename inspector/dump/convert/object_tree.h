// SPDX-License-Identifier: Apache-2.0
// Trees of containers (FORMAT.md: structure) to and from the output names of a model of constants, as onnx-diagnostic's
// mini builder writes them: "dict_x___tuple_0___tensor", "dict._y___list.___empty". Private to this folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "inspector/base/result.h"
#include "inspector/tensor/tensor.h"

namespace parallax::dump {

using Json = nlohmann::ordered_json;

constexpr std::string_view kLevelSeparator = "___";

// Names of values, one level more: segments follow RFC 6901, "/" in a key is written "~1" and "~" is written "~0".
std::string child_name(std::string_view parent, std::string_view key);

// A leaf of a tree under its output name. `leaf` is a node of the tree, `form` the name's last segment: tensor, array,
// int, float, bool or empty.
using LeafVisitor = std::function<Status(const std::string& output_name, std::string_view form, const Json& leaf)>;

// Visits the leaves in the order of the outputs. Containers that the dialect does not know are named as the nearest one
// that it does: sets as lists, records and caches of other classes as dictionaries, texts as arrays. Errors:
// unsupported where a key holds the separator; corrupt_file for a tree that breaks its format.
Status visit_leaves(const Json& tree, const std::string& prefix, const LeafVisitor& visit);

// One output of such a model. Absent tensors stand for "empty" ones.
struct NamedOutput {
  std::string name;
  Tensor tensor;
};

// The object whose outputs begin with `level` equal segments. Leaves that are tensors are named after `root` and their
// position in the containers, and are handed to `keep`. Errors: corrupt_file where the names make no tree.
using TensorSink = std::function<void(const std::string& value_name, const Tensor& tensor)>;
Result<Json> read_tree_of(std::span<const NamedOutput> outputs, size_t level, const std::string& root,
                          const TensorSink& keep);

std::vector<std::string_view> segments_of(std::string_view output_name);
// True where the last segment is one of the forms and all before name containers.
bool is_output_name(std::string_view output_name);

// "((model.decoder,0,I))": the key of a module's call.
struct CallKey {
  std::string module;
  int64_t call = 0;
  bool is_input = false;
};
std::optional<CallKey> parse_call_key(std::string_view key);
std::string to_string(const CallKey& key);

// The key of a dictionary's segment "dict_KEY" or "dict._KEY"; nothing for another segment.
std::optional<std::string_view> dictionary_key(std::string_view segment);

}  // namespace parallax::dump
