// SPDX-License-Identifier: Apache-2.0
// LanguageModel: the models that generate together, found in a folder or given in memory, with the roles of what they
// take and return, and what the files next to them say of tokens.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "inspector/workbench/generate/generation.h"
#include "inspector/workbench/generate/roles.h"

namespace parallax::generate {

// One model file and its roles.
struct Part {
  std::string role;  // "model", "encoder", "decoder", "decoder_with_past", "merged"
  std::string path;
  std::shared_ptr<const Model> model;
  ModelRoles roles;
};

struct LanguageModel {
  std::string title;  // as the request names it
  std::optional<Part> encoder;
  Part first;                   // runs the prompt
  std::optional<Part> later;    // runs what comes after it where that is another model
  GenerationSettings defaults;  // of the files next to the models
  int64_t vocabulary = 0;

  const Part& stepping() const { return later.has_value() ? *later : first; }
  bool pads_right() const { return first.roles.pads_right || stepping().roles.pads_right; }
  bool has_cache() const { return !stepping().roles.past.empty(); }
};

// Errors: usage (a folder without models, a map that names what no model has), io, invalid_model, unsupported.
Result<LanguageModel> open_language_model(const std::string& path, const ModelsByRole& models, const RoleMap& map);

// A JSON object {role: name}. Errors: usage, io.
Result<RoleMap> read_role_map(const std::string& path);

// One sentence: which models there are and what they hold.
std::string describe(const LanguageModel& model);

GenerationModel report_of(const LanguageModel& model);

}  // namespace parallax::generate
