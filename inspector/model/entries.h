// SPDX-License-Identifier: Apache-2.0
// Lists of key/value entries (metadata_props, external_data), between message and IR. Included by .cpp files of this
// folder only.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include "inspector/model/ir.h"

namespace parallax {

// Takes all entries out of the field.
template <class Entry>
Metadata take_entries(google::protobuf::RepeatedPtrField<Entry>& entries) {
  Metadata metadata;
  metadata.reserve(static_cast<size_t>(entries.size()));
  for (Entry& entry : entries)
    metadata.emplace_back(std::move(*entry.mutable_key()), std::move(*entry.mutable_value()));
  entries.Clear();
  return metadata;
}

template <class Entry>
void put_entries(const Metadata& metadata, google::protobuf::RepeatedPtrField<Entry>& entries) {
  for (const auto& [key, value] : metadata) {
    Entry& entry = *entries.Add();
    entry.set_key(key);
    entry.set_value(value);
  }
}

}  // namespace parallax
