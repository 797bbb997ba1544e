// SPDX-License-Identifier: Apache-2.0
// Gathers the inputs of a run: explicit files first, then the source, then the generator for what is left.
#include "inspector/workbench/inputs/inputs.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/dump/tensor_files/declared_type.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/workbench/inputs/data_sources.h"
#include "inspector/workbench/inputs/generated_data.h"
#include "inspector/workbench/inputs/input_use.h"

namespace parallax {
namespace {

using ValuesByName = std::unordered_map<std::string, Value>;

std::string list_names(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (ValueId id : ids) text += (text.empty() ? "'" : ", '") + value_at(graph, id).name + "'";
  return text.empty() ? "none" : text;
}

Error unknown_input(const Graph& graph, std::string_view option, const std::string& name) {
  return usage_error(fmt::format("{} names '{}', which is no input of the model (its inputs: {})", option, name,
                                 list_names(graph, graph.inputs)));
}

Status check_request_names(const Graph& graph, const InputRequest& request) {
  for (const auto& [name, unused] : request.shapes) {
    if (!names_one_of(graph, graph.inputs, name)) return unknown_input(graph, "--shape", name);
  }
  for (const auto& [name, unused] : request.ranges) {
    if (!names_one_of(graph, graph.inputs, name)) return unknown_input(graph, "--range", name);
  }
  DimSizes known = choose_dimensions(graph, {});
  for (ValueId id : graph.inputs) {
    for (const Dim& dim : value_at(graph, id).type.dims.value_or(std::vector<Dim>{})) known.emplace(dim.name, 0);
  }
  for (const auto& [name, unused] : request.dims) {
    if (known.contains(name) && !name.empty()) continue;
    std::string names;
    for (const auto& [other, size] : known) names += other.empty() ? "" : (names.empty() ? "'" : ", '") + other + "'";
    return usage_error(fmt::format("--dim names '{}', which is no dimension of the model's inputs (they are: {})", name,
                                   names.empty() ? "none" : names));
  }
  return {};
}

// Sizes that --shape gives to named dimensions hold for the other inputs, too.
Status bind_dims_of_shapes(const Graph& graph, const InputRequest& request, DimSizes& sizes) {
  for (ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    const auto shape = request.shapes.find(input.name);
    if (shape == request.shapes.end() || !input.type.dims.has_value()) continue;
    if (shape->second.size() != input.type.dims->size()) {
      return usage_error(fmt::format("--shape gives input '{}' {} dimensions, it is {}", input.name,
                                     shape->second.size(), to_string(input.type)));
    }
    for (size_t axis = 0; axis < shape->second.size(); ++axis) {
      const std::string& name = (*input.type.dims)[axis].name;
      if (name.empty()) continue;
      const auto asked = request.dims.find(name);
      if (asked != request.dims.end() && asked->second != shape->second[axis]) {
        return usage_error(fmt::format("--dim {}={} contradicts --shape, which gives axis {} of input '{}' the size {}",
                                       name, asked->second, axis, input.name, shape->second[axis]));
      }
      sizes[name] = shape->second[axis];
    }
  }
  return {};
}

// Takes the sizes that the other model fixes, for dimensions that have no size yet. Those without a name are reported
// here and set where their input is generated.
void take_other_sizes(const ValueDef& input, const InputRequest& request, DimSizes& sizes,
                      std::vector<std::string>& notes) {
  const auto wanted = request.other.inputs.find(input.name);
  if (wanted == request.other.inputs.end() || request.shapes.contains(input.name)) return;
  for (size_t axis = 0; axis < wanted->second.size(); ++axis) {
    const Dim& dim = (*input.type.dims)[axis];
    const int64_t size = wanted->second[axis];
    if (dim.is_known() || size < 0 || (!dim.name.empty() && !sizes.try_emplace(dim.name, size).second)) continue;
    notes.push_back(
        fmt::format("input '{}' has {} in dimension {}, as '{}' has it", input.name, size, axis, request.other.model));
  }
}

class Generator {
 public:
  Generator(const Graph& graph, const InputRequest& request, DimSizes sizes)
      : graph_(graph), request_(request), sizes_(std::move(sizes)) {}

  Result<Value> generate(const ValueDef& input, ValueId id, std::vector<std::string>& notes) const {
    return generate_type(input, input.type, {id, input.name}, notes);
  }

 private:
  // Whose data it is: what is drawn depends on the name, so that two items of a sequence differ.
  struct Target {
    ValueId id;
    std::string name;
  };

  Result<Value> generate_type(const ValueDef& input, const TypeInfo& type, const Target& target,
                              std::vector<std::string>& notes) const {
    switch (type.kind) {
      case TypeInfo::Kind::tensor:
        return generate_tensor(input, type, target, notes);
      case TypeInfo::Kind::sequence: {
        if (type.inner.empty()) break;
        SequenceValue sequence{type.inner.front(), {}};
        for (int item = 0; item < 2; ++item) {
          const Target of_item{target.id, fmt::format("{}[{}]", target.name, item)};
          sequence.items.push_back(PX_TRY(generate_type(input, type.inner.front(), of_item, notes)));
        }
        return Value(std::move(sequence));
      }
      case TypeInfo::Kind::optional: {
        if (type.inner.empty()) break;
        OptionalValue optional{type.inner.front(), {}};
        optional.item.push_back(PX_TRY(generate_type(input, type.inner.front(), target, notes)));
        return Value(std::move(optional));
      }
      default:
        break;
    }
    return usage_error(fmt::format("cannot generate data for input '{}' of type {}: give it by --inputs", input.name,
                                   to_string(type)));
  }

  Result<Value> generate_tensor(const ValueDef& input, const TypeInfo& type, const Target& target,
                                std::vector<std::string>& notes) const {
    if (type.dtype == DType::undefined) {
      return usage_error(
          fmt::format("input '{}' declares no element type: give it by --input {}=F.npy", input.name, input.name));
    }
    ValueDef typed = input;
    typed.type = type;
    const auto given = request_.shapes.find(input.name);
    const auto dims = given != request_.shapes.end() ? given->second : PX_TRY(shape_of_input(typed));
    const Shape shape = PX_TRY_CONTEXT(fmt::format("input '{}'", input.name), Shape::create(dims));
    InputUse use = find_input_use(graph_, target.id);
    if (use.kind == InputUse::Kind::lengths && use.limit < 0) use.limit = longest_sequence();
    const size_t bytes_each = type.dtype == DType::string ? sizeof(std::string) : 0;
    const auto bytes = static_cast<int64_t>(byte_size(type.dtype, shape.element_count()) +
                                            bytes_each * static_cast<size_t>(shape.element_count()));
    PX_TRY(MemoryBudget::check(
        bytes, fmt::format("generated input '{}' {}{}", target.name, name_of(type.dtype), shape.to_string())));
    const auto range = request_.ranges.find(input.name);
    GeneratedData data = PX_TRY(
        generate_data(target.name, type.dtype, shape, use,
                      range == request_.ranges.end() ? std::nullopt : std::optional(range->second), request_.seed));
    notes.push_back(fmt::format("input '{}' {}{}: {}{}", target.name, name_of(type.dtype), shape.to_string(), data.how,
                                use.reason.empty() ? "" : " (" + use.reason + ")"));
    return Value(std::move(data.tensor));
  }

  Result<std::vector<int64_t>> shape_of_input(const ValueDef& input) const {
    std::vector<int64_t> shape = PX_TRY(concrete_shape(input, sizes_));
    const auto other = request_.other.inputs.find(input.name);
    if (other == request_.other.inputs.end() || other->second.size() != shape.size()) return shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const Dim& dim = (*input.type.dims)[axis];
      if (!dim.is_known() && dim.name.empty() && other->second[axis] >= 0) shape[axis] = other->second[axis];
    }
    return shape;
  }

  // The first dimension of the first floating input of rank 3: the time axis of ONNX's recurrent operators.
  int64_t longest_sequence() const {
    for (ValueId id : graph_.inputs) {
      const ValueDef& input = value_at(graph_, id);
      if (!is_floating(input.type.dtype) || !input.type.dims.has_value() || input.type.dims->size() != 3) continue;
      auto shape = concrete_shape(input, sizes_);
      if (shape.ok()) return (*shape)[0];
    }
    return 1;
  }

  const Graph& graph_;
  const InputRequest& request_;
  DimSizes sizes_;
};

std::string_view how_given(const InputRequest& request, const std::string& name) {
  return request.values.contains(name) ? "given as an array" : "read from a file";
}

// Data that were read are not reshaped: --shape and --dim may repeat their sizes, not contradict them.
Status check_asked_shape(const ValueDef& input, const Shape& read, const InputRequest& request) {
  const auto contradiction = [&](const std::string& asked) {
    return usage_error(fmt::format("{}, but input '{}' is {} with shape {}: leave one of the two out", asked,
                                   input.name, how_given(request, input.name), read.to_string()));
  };
  const auto asked = request.shapes.find(input.name);
  if (asked != request.shapes.end() && Shape(std::span<const int64_t>(asked->second)) != read)
    return contradiction(fmt::format("--shape {}={}", input.name, fmt::join(asked->second, "x")));
  if (!input.type.dims.has_value() || read.element_count() == 0) return {};
  for (size_t axis = 0; axis < std::min(read.rank(), input.type.dims->size()); ++axis) {
    const auto dim = request.dims.find((*input.type.dims)[axis].name);
    if (dim != request.dims.end() && dim->second != read[axis])
      return contradiction(fmt::format("--dim {}={}", dim->first, dim->second));
  }
  return {};
}

Status fill_inputs(const Graph& graph, const InputRequest& request, ValuesByName& given, InputSet& set) {
  DimSizes sizes = request.dims;
  PX_TRY(bind_dims_of_shapes(graph, request, sizes));
  // Sizes of inputs that were read hold for those that are generated together with them.
  for (ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    const auto found = given.find(input.name);
    if (found == given.end()) continue;
    if (request.ranges.contains(input.name))
      set.notes.push_back(
          fmt::format("input '{}' is {}: its --range is not used", input.name, how_given(request, input.name)));
    if (!found->second.is_tensor()) continue;
    const Shape& shape = found->second.tensor().shape();
    PX_TRY(check_asked_shape(input, shape, request));
    if (!input.type.dims.has_value()) continue;
    for (size_t axis = 0; axis < std::min(shape.rank(), input.type.dims->size()); ++axis) {
      if (!(*input.type.dims)[axis].name.empty()) sizes.try_emplace((*input.type.dims)[axis].name, shape[axis]);
    }
  }
  for (ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    if (!given.contains(input.name)) take_other_sizes(input, request, sizes, set.notes);
  }
  const Generator generator(graph, request, choose_dimensions(graph, sizes));
  for (ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    const auto found = given.find(input.name);
    if (found != given.end()) {
      set.values.push_back(std::move(found->second));
      given.erase(found);
    } else if (input.initializer_index >= 0 || input.sparse_initializer_index >= 0) {
      set.values.emplace_back();
    } else if (!set.expected.empty()) {
      return usage_error(fmt::format("'{}' holds outputs, and no input '{}' that they were computed from",
                                     request.source, input.name));
    } else {
      set.values.push_back(PX_TRY(generator.generate(input, id, set.notes)));
    }
  }
  return {};
}

bool is_same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::string) return std::ranges::equal(a.as<std::string>(), b.as<std::string>());
  return std::ranges::equal(a.view().bytes(), b.view().bytes());
}

// The value that the data set's outputs were computed from, where it is a tensor: its own, or else the input's default.
const Tensor* tensor_of_data_set(const Graph& graph, const ValuesByName& given, const std::string& name) {
  const auto own = given.find(name);
  if (own != given.end()) return own->second.is_tensor() ? &own->second.tensor() : nullptr;
  const int32_t initializer = value_at(graph, graph.find_value(name)).initializer_index;
  return initializer < 0 ? nullptr : &graph.initializers[static_cast<size_t>(initializer)].tensor;
}

// Reads the inputs that --input and the values in memory replace. Outputs of a data set belong to its own inputs: they
// are left out where an input gets other data. One that the set does not hold, and that has no default, completes it.
Status read_single_inputs(const Graph& graph, const InputRequest& request, ValuesByName& given, InputSet& set) {
  std::string other;
  const auto put = [&](const std::string& name, Value value) {
    const bool is_known = given.contains(name) || value_at(graph, graph.find_value(name)).initializer_index >= 0;
    const Tensor* replaced = tensor_of_data_set(graph, given, name);
    if (is_known && (replaced == nullptr || !value.is_tensor() || !is_same(value.tensor(), *replaced)))
      other += (other.empty() ? "'" : ", '") + name + "'";
    given[name] = std::move(value);
  };
  for (const auto& [name, file] : request.files) {
    if (!names_one_of(graph, graph.inputs, name)) return unknown_input(graph, "--input", name);
    const TypeInfo& declared = value_at(graph, graph.find_value(name)).type;
    const Value read(PX_TRY(read_npy(file)));
    put(name, PX_TRY(in_declared_type(read, declared, fmt::format("input '{}'", name), set.notes)));
  }
  for (const auto& [name, value] : request.values) {
    if (!names_one_of(graph, graph.inputs, name)) return unknown_input(graph, "the mapping of inputs", name);
    put(name, value);
  }
  if (other.empty() || set.expected.empty()) return {};
  set.notes.push_back(
      fmt::format("the outputs in '{}' are not compared: {} gives {} other data than they were computed from",
                  request.source, request.values.empty() ? "--input" : "the mapping of inputs", other));
  set.expected.clear();
  return {};
}

// Values under names that the model does not have are left out with a note, as where a tool stored more than a run
// needs. Where an input is not given, such a name is most likely a misspelt one.
Status leave_out(const Graph& graph, const InputRequest& request, const ValuesByName& given,
                 const std::vector<std::string>& unknown, InputSet& set) {
  if (unknown.empty()) return {};
  for (const ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    const bool has_default = input.initializer_index >= 0 || input.sparse_initializer_index >= 0;
    const bool is_single =
        std::ranges::any_of(request.files, [&](const auto& file) { return file.first == input.name; });
    if (!has_default && !is_single && !given.contains(input.name) && !request.values.contains(input.name))
      return unknown_input(graph, "'" + request.source + "'", unknown.front());
  }
  set.notes.push_back(fmt::format("'{}' also holds '{}', which the model has neither as input nor as output: ignored",
                                  request.source, fmt::join(unknown, "', '")));
  return {};
}

Status read_sources(const Model& model, const InputRequest& request, ValuesByName& given, InputSet& set) {
  const Graph& graph = model.graph;
  std::vector<std::string> unknown;
  const auto expect = [&](NamedValue value) -> Status {
    const ValueDef& output = value_at(graph, graph.find_value(value.name));
    const std::string context = fmt::format("expected output '{}'", value.name);
    const bool is_narrow = output.type.dtype == DType::bfloat16 || output.type.dtype == DType::float16;
    if (is_narrow) value.value = PX_TRY(in_declared_type(value.value, output.type, context, set.notes));
    std::erase_if(set.expected, [&](const NamedValue& other) { return other.name == value.name; });
    if (!model.is_part) set.expected.push_back(std::move(value));
    return {};
  };
  SourceValues source;
  if (!request.source.empty()) source = PX_TRY(read_source(graph, model.is_part, request));
  for (NamedValue& value : source.values) {
    if (names_one_of(graph, graph.inputs, value.name)) {
      const ValueDef& input = value_at(graph, graph.find_value(value.name));
      given[value.name] =
          PX_TRY(in_declared_type(value.value, input.type, fmt::format("input '{}'", value.name), set.notes));
    } else if (names_one_of(graph, graph.outputs, value.name)) {
      PX_TRY(expect(std::move(value)));
    } else {
      unknown.push_back(value.name);
    }
  }
  for (NamedValue& value : source.outputs) PX_TRY(expect(std::move(value)));
  for (const std::string& results : request.results) {
    for (NamedValue& value : PX_TRY(read_value_file_of(results, request.sample))) {
      if (names_one_of(graph, graph.outputs, value.name)) {
        PX_TRY(expect(std::move(value)));
      } else {
        unknown.push_back(value.name);
      }
    }
  }
  return leave_out(graph, request, given, unknown, set);
}

}  // namespace

Result<InputSet> make_inputs(const Model& model, const InputRequest& request) {
  const Graph& graph = model.graph;
  PX_TRY(check_request_names(graph, request));
  InputSet set;
  ValuesByName given;
  PX_TRY(read_sources(model, request, given, set));
  PX_TRY(read_single_inputs(graph, request, given, set));
  PX_TRY(fill_inputs(graph, request, given, set));
  return set;
}

}  // namespace parallax
