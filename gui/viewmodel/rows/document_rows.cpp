// SPDX-License-Identifier: Apache-2.0
// Joining rows with items, entries and verdicts.
#include "gui/viewmodel/rows/document_rows.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gui/viewmodel/inspect/view_inspector.h"
#include "inspector/exec/path_parts.h"
#include "inspector/exec/value_path.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/workbench/open.h"

namespace parallax {

namespace {

void set_dims(ValueRow& row, std::vector<std::string> dims) {
  row.shape = fmt::format("{}", fmt::join(dims, "x"));
  row.dims = std::move(dims);
}

std::vector<std::string> dims_of(const TypeInfo& type) {
  std::vector<std::string> dims;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>()))
    dims.push_back(dim.is_known() ? std::to_string(dim.value) : dim.name.empty() ? "?" : dim.name);
  return dims;
}

}  // namespace

std::string dims_text(const TypeInfo& type) { return fmt::format("{}", fmt::join(dims_of(type), "x")); }

namespace {

void set_type(ValueRow& row, const TypeInfo& type) {
  row.dtype = dtype_text(type);
  set_dims(row, dims_of(type));
}

// The name at the end of a path, as it stands in the model.
std::string name_in(const std::string& path) { return unescape_name(std::string_view(path).substr(name_begin(path))); }

int32_t item_of(const GraphItems* items, const ValueRow& row) {
  if (items == nullptr) return -1;
  const std::string scope = static_scope_of(row.path);
  const int32_t input = items->find_input(scope, name_in(row.path));
  return input >= 0 ? input : items->find_node(scope, row.node);
}

// "step[7]//x" and "loop.body[3]//x": 7 and 3; -1 where nothing is repeated.
int64_t iteration_of(std::string_view path) {
  for (std::string_view mark : {"step[", ".body["}) {
    const size_t at = path.find(mark);
    if (at == std::string_view::npos || (mark[0] == 's' && at != 0 && path[at - 1] != '/')) continue;
    int64_t number = -1;
    const char* begin = path.data() + at + mark.size();
    std::from_chars(begin, path.data() + path.size(), number);
    return number;
  }
  return -1;
}

ValueRow row_of_entry(const DumpEntry& entry) {
  ValueRow row;
  row.path = entry.path;
  row.node = entry.node;
  row.op = entry.op;
  set_type(row, entry.type);
  return row;
}

}  // namespace

std::string family_of(const std::string& path) { return static_scope_of(path) + name_in(path); }

void add_dump_rows(Document& document) {
  const auto entries = document.a->entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    ValueRow row = row_of_entry(entries[i]);
    row.entry_a = static_cast<int32_t>(i);
    if (document.b != nullptr) row.entry_b = document.b->find(row.path);
    document.rows.push_back(std::move(row));
  }
}

void add_model_rows(Document& document) {
  const GraphItems& items = *document.items;
  for (size_t i = 0; i < items.items().size(); ++i) {
    const GraphItem& item = items.items()[i];
    const auto add = [&](ValueId id, const std::string& node, const std::string& op) {
      if (id == kNoValue) return;
      const ValueDef& value = item.graph->values[static_cast<size_t>(id)];
      ValueRow row;
      row.path = item.scope + escape_name(value.name);
      row.node = node;
      row.op = op;
      set_type(row, value.type);
      document.rows.push_back(std::move(row));
    };
    if (item.kind == GraphItem::Kind::input) add(item.value, "", "");
    if (item.kind != GraphItem::Kind::node) continue;
    const Node& node = item.graph->nodes[static_cast<size_t>(item.node)];
    for (ValueId output : node.outputs) add(output, node.display_name, node.op_type);
  }
}

// Weights follow the values that nodes make; each stands at the first node that reads it.
void add_weight_rows(Document& document) {
  std::unordered_map<std::string, int32_t> entries;
  const auto weights = document.weights->entries();
  for (size_t i = 0; i < weights.size(); ++i) entries.emplace(family_of(weights[i].path), static_cast<int32_t>(i));
  const auto join = [&](ValueRow& row) {
    const auto found = entries.find(row.path);
    if (found == entries.end()) return false;
    row.weight = found->second;
    set_type(row, weights[static_cast<size_t>(row.weight)].type);
    return true;
  };
  for (ValueRow& row : document.rows) join(row);  // of Constant nodes
  const auto& items = document.items->items();
  for (const GraphItem& item : items) {
    if (&item != &items.front() && item.kind != GraphItem::Kind::body) continue;
    for (const auto* ids : {&item.graph->initializer_values, &item.graph->sparse_initializer_values}) {
      for (const ValueId id : *ids) {
        const ValueDef& value = value_at(*item.graph, id);
        ValueRow row;
        row.path = item.scope + escape_name(value.name);
        if (!value.readers.empty())
          row.node = item.graph->nodes[static_cast<size_t>(value.readers.front())].display_name;
        if (join(row)) document.rows.push_back(std::move(row));
      }
    }
  }
}

namespace {

// A model's weight stands in for one whose elements the dump does not hold.
void find_weight(const Document& document, ValueRow& row) {
  if (document.weights == nullptr) return;
  if (row.entry_a >= 0) {
    const DumpEntry& entry = document.a->entries()[static_cast<size_t>(row.entry_a)];
    if (!entry.absence.has_value() && entry.level == CaptureLevel::all) return;
  }
  row.weight = document.weights->find(row.path);
}

}  // namespace

void add_comparison_rows(Document& document) {
  const auto& values = document.comparison->values;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueComparison& value = values[i];
    ValueRow row;
    row.path = value.path;
    row.node = value.node;
    row.op = value.op;
    row.dtype = value.dtype;
    std::vector<std::string> dims;
    for (const int64_t dim : value.shape) dims.push_back(std::to_string(dim));
    set_dims(row, std::move(dims));
    row.comparison = static_cast<int32_t>(i);
    row.is_only_b = document.models != nullptr && value.a.empty();
    if (document.a != nullptr && !value.a.empty()) row.entry_a = document.a->find(value.a);
    if (document.b != nullptr && !value.b.empty()) row.entry_b = document.b->find(value.b);
    if (!row.is_only_b) find_weight(document, row);
    document.rows.push_back(std::move(row));
  }
}

void add_comparison_rows_of_b(const Document& before, Document& b) {
  const auto& values = b.comparison->values;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueComparison& value = values[i];
    if (value.b.empty()) continue;
    const int32_t entry = b.a == nullptr ? -1 : b.a->find(value.b), known = before.find_any_row(value.b);
    ValueRow row;
    if (entry >= 0) {
      row = row_of_entry(b.a->entries()[static_cast<size_t>(entry)]);
    } else if (known >= 0) {
      row = before.rows[static_cast<size_t>(known)];
    }
    row.path = value.b;
    row.comparison = static_cast<int32_t>(i);
    row.entry_a = entry;
    row.entry_b = row.weight = row.row_b = -1;
    find_weight(b, row);
    b.rows.push_back(std::move(row));
  }
}

void keep_weight_rows(const Document& before, Document& document) {
  std::unordered_set<std::string_view> known;
  for (const ValueRow& row : document.rows) {
    if (!row.is_only_b) known.insert(row.path);
  }
  std::vector<ValueRow> kept;
  for (const ValueRow& row : before.rows) {
    if (row.weight >= 0 && !known.contains(row.path)) kept.push_back(row);
  }
  for (ValueRow& row : kept) {
    row.comparison = row.entry_a = row.entry_b = -1;
    document.rows.push_back(std::move(row));
  }
}

std::vector<std::string> remarks_on(const DumpReader& dump, std::string_view side) {
  std::vector<std::string> remarks = run_remarks(dump, side);
  const bool lacks = std::ranges::any_of(dump.entries(), [](const DumpEntry& entry) {
    return !entry.absence.has_value() && entry.level < CaptureLevel::all && entry.role == ValueInfo::Role::node_output;
  });
  if (lacks) remarks.push_back(fmt::format("{} does not hold all elements of all values", title_of(dump, side)));
  return remarks;
}

void index_rows(Document& document) {
  document.rows_of_item.assign(document.items == nullptr ? 0 : document.items->items().size(), {});
  document.rows_of_family.clear();
  document.row_of_path.clear();
  document.family_of_path.clear();
  document.iterations = 0;
  for (size_t i = 0; i < document.rows.size(); ++i) {
    ValueRow& row = document.rows[i];
    const auto index = static_cast<int32_t>(i);
    row.item = row.is_only_b ? -1 : item_of(document.items.get(), row);
    row.iteration = iteration_of(row.path);
    document.iterations = std::max(document.iterations, row.iteration + 1);
    if (row.item >= 0) document.rows_of_item[static_cast<size_t>(row.item)].push_back(index);
    const auto [named, is_first] = document.row_of_path.emplace(row.path, index);
    // A value that B alone has may be called as another one of A is.
    const ValueComparison* known = document.compared(named->second);
    if (!is_first && known != nullptr && known->a.empty()) named->second = index;
    const auto next = static_cast<int32_t>(document.rows_of_family.size());
    const auto [family, is_new] =
        document.family_of_path.emplace(family_of(row.path) + (row.is_only_b ? " (B)" : ""), next);
    if (is_new) document.rows_of_family.emplace_back();
    row.family = family->second;
    document.rows_of_family[static_cast<size_t>(row.family)].push_back(index);
  }
}

}  // namespace parallax
