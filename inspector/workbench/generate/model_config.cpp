// SPDX-License-Identifier: Apache-2.0
// Keys of three kinds of files, one table.
#include "inspector/workbench/generate/model_config.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"

namespace parallax::generate {
namespace {

using nlohmann::json;

Result<std::optional<json>> read_object(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::optional<json>();
  const auto file = PX_TRY(MappedFile::open(path));
  const auto bytes = file->bytes();
  json document = json::parse(reinterpret_cast<const char*>(bytes.data()),
                              reinterpret_cast<const char*>(bytes.data()) + bytes.size(), nullptr, false);
  if (!document.is_object())
    return usage_error(fmt::format("'{}' is no JSON object; it must hold the model's configuration", path));
  return std::optional<json>(std::move(document));
}

Error wrong_kind(std::string_view key, std::string_view kind) {
  return usage_error(fmt::format("'{}' is no {}", key, kind));
}

// Absent and null give nothing.
template <class T>
Status take(const json& object, const char* key, std::optional<T>& value) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null() || value.has_value()) return {};
  if constexpr (std::is_same_v<T, double>) {
    if (!found->is_number()) return wrong_kind(key, "number");
  } else {
    if (!found->is_number_integer()) return wrong_kind(key, "integer");
  }
  value = found->get<T>();
  return {};
}

// An integer or a list of integers.
Status take_ids(const json& object, const char* key, std::optional<std::vector<int64_t>>& ids) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null() || ids.has_value()) return {};
  const json list = found->is_array() ? *found : json::array({*found});
  std::vector<int64_t> values;
  for (const json& id : list) {
    if (!id.is_number_integer()) return wrong_kind(key, "integer and no list of integers");
    values.push_back(id.get<int64_t>());
  }
  ids = std::move(values);
  return {};
}

Status take_early_stopping(const json& object, std::optional<EarlyStopping>& value) {
  const auto found = object.find("early_stopping");
  if (found == object.end() || found->is_null() || value.has_value()) return {};
  if (found->is_boolean()) {
    value = found->get<bool>() ? EarlyStopping::yes : EarlyStopping::no;
  } else if (found->is_string() && found->get<std::string>() == "never") {
    value = EarlyStopping::never;
  } else {
    return wrong_kind("early_stopping", "true, false or \"never\"");
  }
  return {};
}

// Keys that transformers writes. `max_length` counts the prompt too and is no default of ours.
Status take_generation(const json& object, GenerationSettings& settings) {
  PX_TRY(take(object, "max_new_tokens", settings.max_new_tokens));
  PX_TRY(take(object, "min_new_tokens", settings.min_new_tokens));
  PX_TRY(take_ids(object, "eos_token_id", settings.eos));
  PX_TRY(take(object, "pad_token_id", settings.pad));
  PX_TRY(take_ids(object, "decoder_start_token_id", settings.start_ids));
  PX_TRY(take(object, "num_beams", settings.beams));
  PX_TRY(take(object, "length_penalty", settings.length_penalty));
  PX_TRY(take_early_stopping(object, settings.early_stopping));
  PX_TRY(take(object, "no_repeat_ngram_size", settings.no_repeat_ngram));
  PX_TRY(take(object, "repetition_penalty", settings.repetition_penalty));
  PX_TRY(take(object, "temperature", settings.temperature));
  PX_TRY(take(object, "top_k", settings.top_k));
  PX_TRY(take(object, "top_p", settings.top_p));
  return take(object, "min_p", settings.min_p);
}

// The first of these keys that is there.
Status take_first(const json& object, std::initializer_list<const char*> keys, std::optional<int64_t>& value) {
  for (const char* key : keys) PX_TRY(take(object, key, value));
  return {};
}

// Families of transformers name the sizes of their attention differently.
Status take_cache_dims(const json& object, CacheDims& dims) {
  PX_TRY(take_first(object, {"num_key_value_heads", "num_attention_heads", "n_head", "num_heads"}, dims.heads));
  PX_TRY(take_first(object, {"head_dim", "d_kv"}, dims.head_size));
  std::optional<int64_t> width, heads;
  PX_TRY(take_first(object, {"hidden_size", "n_embd"}, width));
  PX_TRY(take_first(object, {"num_attention_heads", "n_head"}, heads));
  if (!dims.head_size.has_value() && width.has_value() && heads.value_or(0) > 0) dims.head_size = *width / *heads;
  return {};
}

Status take_genai_decoder(const json& decoder, ModelConfig& config) {
  if (decoder.contains("filename") && decoder["filename"].is_string())
    config.decoder_file = decoder["filename"].get<std::string>();
  PX_TRY(take(decoder, "num_key_value_heads", config.cache.heads));
  return take(decoder, "head_size", config.cache.head_size);
}

Status take_genai(const json& object, ModelConfig& config) {
  if (const auto model = object.find("model"); model != object.end() && model->is_object()) {
    PX_TRY(take_ids(*model, "eos_token_id", config.defaults.eos));
    PX_TRY(take(*model, "pad_token_id", config.defaults.pad));
    const auto decoder = model->find("decoder");
    if (decoder != model->end() && decoder->is_object()) PX_TRY(take_genai_decoder(*decoder, config));
  }
  const auto search = object.find("search");
  if (search == object.end() || !search->is_object()) return {};
  return take_generation(*search, config.defaults);
}

}  // namespace

Result<ModelConfig> read_model_config(const std::string& folder) {
  ModelConfig config;
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::string path = folder + "/" + name;
    const auto object = PX_TRY(read_object(path));
    if (object.has_value()) PX_TRY_CONTEXT(path, take_generation(*object, config.defaults));
  }
  const std::string path = folder + "/genai_config.json";
  const auto object = PX_TRY(read_object(path));
  if (object.has_value()) PX_TRY_CONTEXT(path, take_genai(*object, config));
  const std::string sizes_path = folder + "/config.json";
  const auto sizes = PX_TRY(read_object(sizes_path));
  if (sizes.has_value()) PX_TRY_CONTEXT(sizes_path, take_cache_dims(*sizes, config.cache));
  return config;
}

}  // namespace parallax::generate
