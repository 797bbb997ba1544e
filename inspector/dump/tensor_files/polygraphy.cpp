// SPDX-License-Identifier: Apache-2.0
// Polygraphy's JSON. Arrays are .npy files in base64; `polygraphy_class` names the class of every object.
// Source: polygraphy/json/serde.py and comparator/struct.py of Polygraphy 0.49.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"
#include "inspector/base/memory_budget.h"
#include "inspector/dump/tensor_files/npy.h"

namespace parallax {
namespace {

using Json = nlohmann::json;

// RFC 4648, section 4. Nothing for a text that is no base64.
bool decode_base64(std::string_view text, std::byte* target, size_t& size) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static const auto kValues = [&] {
    std::array<int8_t, 256> values;
    values.fill(-1);
    for (size_t digit = 0; digit < kDigits.size(); ++digit)
      values[static_cast<unsigned char>(kDigits[digit])] = static_cast<int8_t>(digit);
    return values;
  }();
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  uint32_t bits = 0;
  int count = 0;
  size = 0;
  for (const char character : text) {
    const int value = kValues[static_cast<unsigned char>(character)];
    if (value < 0) return false;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    target[size++] = static_cast<std::byte>((bits >> count) & 0xFF);
  }
  return true;
}

std::string class_of(const Json& object) {
  const auto found = object.is_object() ? object.find("polygraphy_class") : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// An array, which RunResults wrap in an object that loads it late.
Result<Tensor> read_array(const Json& object) {
  const Json* array = &object;
  if (array->is_object() && array->contains("values")) array = &(*array)["values"];
  if (array->is_object() && class_of(*array) == "Tensor")
    return unsupported("it is a tensor of torch: save it as an array of numpy");
  if (!array->is_object() || !array->contains("array") || !(*array)["array"].is_string())
    return corrupt_file("it is no array as Polygraphy writes them: {\"array\": base64 of a .npy file}");
  const auto& text = (*array)["array"].get_ref<const std::string&>();
  Tensor bytes = PX_TRY(Tensor::allocate(DType::uint8, Shape{static_cast<int64_t>(text.size() / 4 * 3 + 3)}));
  size_t size = 0;
  if (!decode_base64(text, bytes.mutable_data(), size)) return corrupt_file("its array is no base64");
  return parse_npy(bytes.view().bytes().first(size), bytes.storage());
}

Result<std::vector<NamedValue>> read_arrays(const Json& arrays) {
  if (!arrays.is_object()) return corrupt_file("an iteration is no mapping of names to arrays");
  std::vector<NamedValue> values;
  for (const auto& [name, array] : arrays.items()) {
    if (name == "polygraphy_class") continue;
    Value value(PX_TRY_CONTEXT("'" + name + "'", read_array(array)));
    values.push_back({name, std::move(value)});
  }
  return values;
}

// {"lst": [[runner, [{"outputs": {...}}, ...]], ...]}
Result<PolygraphyFile> read_results(const Json& document) {
  const Json runners = document.value("lst", Json());
  const auto is_runner = [](const Json& runner) {
    return runner.is_array() && runner.size() == 2 && runner[0].is_string() && runner[1].is_array();
  };
  if (!runners.is_array() || runners.empty() || !std::ranges::all_of(runners, is_runner))
    return corrupt_file("its RunResults hold no list of runners with their iterations");
  if (runners.size() > 1) {
    std::string names;
    for (const Json& runner : runners) names += (names.empty() ? "'" : ", '") + runner[0].get<std::string>() + "'";
    return unsupported(
        fmt::format("it holds results of {} runners ({}): save those of one by itself", runners.size(), names));
  }
  PolygraphyFile file{true, {}};
  for (const Json& iteration : runners[0][1]) {
    if (!iteration.is_object() || !iteration.contains("outputs"))
      return corrupt_file("an iteration of its RunResults has no 'outputs'");
    file.iterations.push_back(PX_TRY(read_arrays(iteration["outputs"])));
  }
  return file;
}

}  // namespace

Result<PolygraphyFile> parse_polygraphy(std::string_view text) {
  const Json document = Json::parse(text, nullptr, false);
  PolygraphyFile file;
  if (class_of(document) == "RunResults") {
    file = PX_TRY(read_results(document));
  } else if (document.is_array()) {
    for (const Json& iteration : document) file.iterations.push_back(PX_TRY(read_arrays(iteration)));
  } else {
    return corrupt_file(
        "it is no JSON that Polygraphy wrote: it must be RunResults, or a list of mappings of names to arrays");
  }
  if (file.iterations.empty()) return corrupt_file("it holds no iteration; it must hold one or more");
  return file;
}

Result<PolygraphyFile> read_polygraphy(const std::string& path) {
  const auto file = PX_TRY(MappedFile::open(path));
  const auto bytes = file->bytes();
  // The parsed text and the arrays decoded from it.
  const auto reserved = PX_TRY(MemoryBudget::reserved_with(file, static_cast<int64_t>(bytes.size()), "'" + path + "'"));
  return PX_TRY_CONTEXT("'" + path + "'",
                        parse_polygraphy({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

}  // namespace parallax
