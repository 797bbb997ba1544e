// SPDX-License-Identifier: Apache-2.0
// The models of a folder, by the layouts of exporters.
#include "inspector/workbench/generate/language_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/generate/model_config.h"

namespace parallax::generate {
namespace {

namespace fs = std::filesystem;

struct Location {
  std::string_view role;
  std::array<std::string_view, 3> files;  // the first that exists
};

constexpr std::array kPositions = {
    Location{"encoder", {"encoder/model.onnx", "encoder_model.onnx", "onnx/encoder_model.onnx"}},
    Location{"merged", {"merged/model.onnx", "decoder_model_merged.onnx", "onnx/decoder_model_merged.onnx"}},
    Location{"decoder", {"decoder/model.onnx", "decoder_model.onnx", "onnx/decoder_model.onnx"}},
    Location{"decoder_with_past",
             {"decoder_with_past/model.onnx", "decoder_with_past_model.onnx", "onnx/decoder_with_past_model.onnx"}},
    Location{"model", {"model.onnx", "onnx/model.onnx", "model.textproto"}},
};

using Paths = std::map<std::string, std::string>;  // role -> file

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Result<Paths> find_files(const std::string& folder, const ModelConfig& config) {
  Paths paths;
  for (const Location& location : kPositions) {
    for (const std::string_view file : location.files) {
      const std::string path = fmt::format("{}/{}", folder, file);
      if (paths.contains(std::string(location.role)) || !is_file(path)) continue;
      paths[std::string(location.role)] = path;
    }
  }
  if (!config.decoder_file.empty()) paths["model"] = fmt::format("{}/{}", folder, config.decoder_file);
  if (paths.empty())
    return usage_error(
        fmt::format("folder '{}' holds no model; it must hold model.onnx, or encoder/, decoder/, decoder_with_past/ "
                    "and merged/ with "
                    "a model.onnx each, or files named as Optimum does (decoder_model.onnx)",
                    folder));
  return paths;
}

struct Loaded {
  std::map<std::string, Part> parts;
  std::optional<Part> take(const std::string& role) {
    const auto found = parts.find(role);
    if (found == parts.end()) return std::nullopt;
    return std::move(parts.extract(found).mapped());
  }
};

// The models that are needed of those that are there.
std::set<std::string> needed_roles(const std::set<std::string>& found) {
  if (found.contains("encoder")) {
    if (found.contains("merged")) return {"encoder", "merged"};
    std::set<std::string> roles = found;
    roles.erase("model");
    if (roles.size() == 1 && found.contains("model")) return {"encoder", "model"};
    return roles;
  }
  if (found.contains("model")) return {"model"};
  if (found.contains("merged")) return {"merged"};
  return found;
}

Error without_decoder(const std::string& title) {
  return unsupported(
      fmt::format("'{}' has no decoder: there is an encoder alone; give the folder that holds both", title));
}

Status check_encoder(const LanguageModel& model) {
  for (const Part* part : {&model.first, &model.stepping()}) {
    if (model.encoder.has_value() || !part->roles.input(InputRole::encoder_hidden_states).has_value()) continue;
    return unsupported(fmt::format(
        "'{}' reads encoder_hidden_states and there is no encoder; give the folder that holds both", part->path));
  }
  return {};
}

// Each past of the later model starts as what the first one returns.
Status check_first_step(const LanguageModel& model) {
  if (!model.later.has_value()) return {};
  const Part& later = *model.later;
  const auto pairs = pair_caches(later.roles.past, model.first.roles.present);
  for (size_t index = 0; index < pairs.size(); ++index) {
    if (pairs[index] >= 0) continue;
    return invalid_model(fmt::format(
        "input '{}' of '{}' is returned by none of the {} present outputs of '{}'; each past of a later step "
        "needs a present of the first one with its name or position, which --map can name",
        later.roles.past[index].name, later.path, model.first.roles.present.size(), model.first.path));
  }
  return {};
}

Status check_map_names(const RoleMap& map, const LanguageModel& model) {
  for (const auto& [role, name] : map) {
    bool is_known = false;
    for (const Part* part : {model.encoder.has_value() ? &*model.encoder : nullptr, &model.first, &model.stepping()}) {
      if (part == nullptr) continue;
      const Graph& graph = part->model->graph;
      const auto is_it = [&graph, &wanted = name](ValueId id) { return value_at(graph, id).name == wanted; };
      is_known = is_known || std::ranges::any_of(graph.inputs, is_it) || std::ranges::any_of(graph.outputs, is_it);
    }
    if (!is_known)
      return usage_error(fmt::format(
          "--map gives the role '{}' to '{}', and no model has an input or output of that name", role, name));
  }
  return {};
}

Result<Part> make_part(const std::string& role, const std::string& path, std::shared_ptr<const Model> model,
                       const RoleMap& map, const CacheDims& cache) {
  Part part{role, path, std::move(model), {}};
  part.roles = role == "encoder" ? PX_TRY(encoder_roles(*part.model, map)) : PX_TRY(decoder_roles(*part.model, map));
  auto complete = with_cache_dims(part.model, part.roles, cache);
  if (complete == part.model) return part;
  part.model = std::move(complete);
  part.roles = PX_TRY(decoder_roles(*part.model, map));
  return part;
}

Result<Loaded> load_parts(const std::string& path, const ModelsByRole& models, const RoleMap& map,
                          const ModelConfig& config) {
  Loaded loaded;
  if (!models.empty()) {
    for (const auto& [role, model] : models)
      loaded.parts.emplace(role,
                           PX_TRY(make_part(role, model->path.empty() ? role : model->path, model, map, config.cache)));
    return loaded;
  }
  std::error_code error;
  const Paths paths = fs::is_directory(path, error) ? PX_TRY(find_files(path, config)) : Paths{{"model", path}};
  std::set<std::string> found;
  for (const auto& [role, file] : paths) found.insert(role);
  const std::set<std::string> needed = needed_roles(found);
  for (const auto& [role, file] : paths) {
    if (!needed.contains(role)) continue;
    ImportOptions options;
    options.hash = true;
    const auto model = PX_TRY(import_model(file, options));
    loaded.parts.emplace(role, PX_TRY(make_part(role, file, model, map, config.cache)));
  }
  return loaded;
}

std::string folder_of(const std::string& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return path;
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

int64_t count_layers(const std::vector<CacheSlot>& past) {
  std::set<std::string> layers;
  for (const CacheSlot& slot : past) {
    const size_t begin = slot.key.find_first_of("0123456789");
    if (begin == std::string::npos) continue;
    layers.insert(slot.key.substr(begin, slot.key.find_first_not_of("0123456789", begin) - begin));
  }
  return static_cast<int64_t>(layers.size());
}

}  // namespace

Result<LanguageModel> open_language_model(const std::string& path, const ModelsByRole& models, const RoleMap& map) {
  LanguageModel result;
  result.title = path;
  const std::string folder = folder_of(path);
  const ModelConfig config = folder.empty() ? ModelConfig{} : PX_TRY(read_model_config(folder));
  result.defaults = config.defaults;
  Loaded loaded = PX_TRY(load_parts(path, models, map, config));
  result.encoder = loaded.take("encoder");
  const auto with_past = loaded.take("decoder_with_past");
  for (const char* role : {"merged", "decoder", "model"}) {
    if (auto part = loaded.take(role); part.has_value() && result.first.model == nullptr)
      result.first = *std::move(part);
  }
  if (result.first.model == nullptr && with_past.has_value()) {
    result.first = *with_past;  // fed with an empty past
  } else if (with_past.has_value() && result.first.role == "decoder") {
    result.later = with_past;
  }
  if (result.first.model == nullptr) return without_decoder(path);
  PX_TRY(check_encoder(result));
  PX_TRY(check_first_step(result));
  PX_TRY(check_map_names(map, result));
  result.vocabulary = vocabulary_of(*result.first.model, result.first.roles);
  return result;
}

Result<RoleMap> read_role_map(const std::string& path) {
  const auto file = PX_TRY(MappedFile::open(path));
  const auto bytes = file->bytes();
  const char* text = reinterpret_cast<const char*>(bytes.data());
  const nlohmann::json document = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  RoleMap map;
  bool fits = document.is_object();
  for (auto item = document.begin(); fits && item != document.end(); ++item) {
    fits = item->is_string();
    if (fits) map[item.key()] = item->get<std::string>();
  }
  if (!fits)
    return usage_error(fmt::format(
        "'{}' is no map of roles; it must be a JSON object of texts, as {{\"input_ids\": \"tokens\"}}", path));
  return map;
}

std::string describe(const LanguageModel& model) {
  std::vector<std::string> files;
  if (model.encoder.has_value()) files.push_back(model.encoder->path);
  files.push_back(model.first.path + (model.later.has_value() ? " (first step)" : ""));
  if (model.later.has_value()) files.push_back(model.later->path);
  const GenerationModel report = report_of(model);
  const std::string caches = model.has_cache()
                                 ? fmt::format("{} layers, {} caches each", report.layers, report.caches_per_layer)
                                 : "no cache: all tokens are computed with each step";
  return fmt::format("roles: {} ({})", fmt::join(files, ", "), caches);
}

GenerationModel report_of(const LanguageModel& model) {
  GenerationModel report;
  report.kind = model.encoder.has_value() ? "encoder-decoder" : "decoder";
  if (model.encoder.has_value()) {
    report.files["encoder"] = model.encoder->path;
    report.roles = roles_by_name(*model.encoder->model, model.encoder->roles, "encoder.");
  }
  report.files[model.first.role] = model.first.path;
  if (model.later.has_value()) report.files[model.later->role] = model.later->path;
  const Part& part = model.stepping();
  for (const auto& [role, name] : roles_by_name(*part.model, part.roles, "")) report.roles[role] = name;
  report.layers = count_layers(part.roles.past);
  report.caches_per_layer = report.layers > 0 ? static_cast<int64_t>(part.roles.past.size()) / report.layers : 0;
  for (const CacheSlot& slot : part.roles.past) {
    if (slot.is_cross) continue;
    int64_t bytes = static_cast<int64_t>(byte_size(slot.dtype, 1));
    for (size_t axis = 0; axis < slot.dims.size(); ++axis) {
      const bool counts = static_cast<int>(axis) != slot.axis && static_cast<int>(axis) != slot.batch_axis;
      if (counts && slot.dims[axis] > 0) bytes *= slot.dims[axis];
    }
    report.cache_bytes_per_token += bytes;
  }
  report.vocabulary = model.vocabulary;
  return report;
}

}  // namespace parallax::generate
