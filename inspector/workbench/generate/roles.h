// SPDX-License-Identifier: Apache-2.0
// Roles: what each input and output of a language model is for, by its name and shape.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::generate {

enum class InputRole : uint8_t {
  input_ids,
  attention_mask,
  position_ids,
  cache_position,
  use_cache,
  encoder_hidden_states,
  encoder_attention_mask,
  sequence_lengths,       // seqlens_k of com.microsoft.GroupQueryAttention: the length of each row, minus one
  total_sequence_length,  // of past and new tokens
  logits_to_keep,         // how many of the last positions reach the head; 0: all
  past,
  none,  // has a default value
};

// A cache as an input or an output names it: `key` is the name without "past_key_values" or "present".
struct CacheSlot {
  std::string key;
  std::string name;
  size_t index = 0;       // in Graph::inputs or Graph::outputs
  bool is_cross = false;  // keys or values of the encoder's states, which never grow
  int axis = 2;           // that grows
  int batch_axis = 0;
  DType dtype = DType::float32;
  std::vector<int64_t> dims;  // -1 where the model does not fix one
};

struct ModelRoles {
  std::vector<InputRole> inputs;         // in the order of Graph::inputs
  std::vector<CacheSlot> past, present;  // in the order of the graph
  std::vector<int32_t> present_of_past;  // index into `present`, -1: the model does not return it
  std::optional<size_t> logits;          // index of an output
  std::optional<size_t> hidden_states;   // of an encoder
  // com.microsoft.GroupQueryAttention takes each row's tokens for the first ones: padding follows them.
  bool pads_right = false;
  std::optional<size_t> input(InputRole role) const;  // the first input of that role
};

// Names that the caller gave: role or name-like-a-past -> name of an input or output.
using RoleMap = std::map<std::string, std::string>;

std::string_view name_of(InputRole role);

// Errors: invalid_model and unsupported: no input is input_ids; an input has no role; past and present do not pair.
Result<ModelRoles> decoder_roles(const Model& model, const RoleMap& map);
Result<ModelRoles> encoder_roles(const Model& model, const RoleMap& map);

// Which present stands for which past of another model (the first step of decoder and decoder_with_past), by key, else
// by position; -1: none.
std::vector<int32_t> pair_caches(const std::vector<CacheSlot>& past, const std::vector<CacheSlot>& present);

// role -> name, for reports.
std::map<std::string, std::string> roles_by_name(const Model& model, const ModelRoles& roles, std::string_view prefix);

// Number of rows of the embedding that `input_ids` reads; 0: not known.
int64_t vocabulary_of(const Model& model, const ModelRoles& roles);

}  // namespace parallax::generate
