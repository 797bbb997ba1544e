// SPDX-License-Identifier: Apache-2.0
// The view as JSON: setting it. One row of the table for each key.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gui/viewmodel/view_state_names.h"
#include "gui/viewmodel/viewer_graph_commands.h"

namespace parallax {
namespace {

using Json = nlohmann::ordered_json;

template <class Names>
Result<size_t> index_in(const Names& names, const Json& value) {
  const auto name = value.get<std::string>();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  return usage_error(fmt::format("it cannot be '{}'; it must be one of {}", name, fmt::join(names, ", ")));
}

template <class Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

Status set_color_by(Viewer& viewer, const Json& value) {
  viewer.set_color_by(static_cast<ColorBy>(PX_TRY(index_in(names_of(colorings()), value))));
  return {};
}
Status set_search(Viewer& viewer, const Json& value) {
  viewer.set_search(value.get<std::string>());
  return {};
}
Status set_preset(Viewer& viewer, const Json& value) {
  viewer.preset = static_cast<Preset>(PX_TRY(index_in(kPresets, value)));
  return {};
}
Status set_tab(Viewer& viewer, const Json& value) {
  viewer.left_tab = static_cast<LeftTab>(PX_TRY(index_in(kTabs, value)));
  return {};
}
Status set_theme(Viewer& viewer, const Json& value) {
  constexpr std::array<std::string_view, 2> kThemes = {"dark", "light"};
  viewer.is_dark = PX_TRY(index_in(kThemes, value)) == 0;
  return {};
}
Status select(Viewer& viewer, const Json& value) {
  const auto path = value.get<std::string>();
  if (!viewer.select_path(path))
    return usage_error(fmt::format("there is no value or node '{}'; it must be a path of the document", path));
  return {};
}
Status select_b(Viewer& viewer, const Json& value) {
  const auto path = value.get<std::string>();
  if (!viewer.select_path_in_b(path))
    return usage_error(fmt::format("B has no value or node '{}'; it must be a path of the second of two models", path));
  return {};
}
Status set_mode(Viewer& viewer, const Json& value) {
  viewer.set_tensor_mode(static_cast<TensorMode>(PX_TRY(index_in(names_of(tensor_modes()), value))));
  return {};
}
Status set_split(Viewer& viewer, const Json& value) {
  viewer.tensor().is_split = value.get<bool>();
  return {};
}
Status set_montage(Viewer& viewer, const Json& value) {
  viewer.set_montage(value.get<bool>());
  return {};
}
Status set_brush(Viewer& viewer, const Json& value) {
  const auto brush = value.get<std::array<double, 2>>();
  viewer.set_brush(ValueRange{brush[0], brush[1]});
  return {};
}
Status set_list(Viewer& viewer, const Json& value) {
  viewer.tensor().tab = static_cast<TensorTab>(PX_TRY(index_in(kTensorTabs, value)));
  return {};
}
Status set_whole(Viewer& viewer, const Json& value) {
  viewer.tensor().chosen_whole = value.get<bool>();
  ++viewer.tensor().version;
  return {};
}
Status set_flips_axis(Viewer& viewer, const Json& value) {
  viewer.tensor().flips_axis = value.get<bool>();
  ++viewer.tensor().version;
  return {};
}
Status set_linear_counts(Viewer& viewer, const Json& value) {
  viewer.tensor().linear_counts = value.get<bool>();
  return {};
}
Status set_slice(Viewer& viewer, const Json& value) {
  if (!viewer.tensor().model.has_value()) return usage_error("no value with elements is selected; select one first");
  const auto index = value.get<std::vector<int64_t>>();
  for (size_t axis = 0; axis < index.size(); ++axis)
    viewer.tensor().model->set_index(static_cast<int>(axis), index[axis]);
  viewer.refresh_range();
  return {};
}
Status set_element(Viewer& viewer, const Json& value) {
  if (!viewer.tensor().model.has_value()) return usage_error("no value with elements is selected; select one first");
  const int64_t element = viewer.tensor().model->element_of(value.get<std::vector<int64_t>>());
  if (element < 0)
    return usage_error(fmt::format("[{}] is not in the tensor {}; it must be an index of it",
                                   fmt::join(value.get<std::vector<int64_t>>(), ","),
                                   viewer.tensor().model->shape().to_string()));
  viewer.select_element(element);
  return {};
}
Status set_iteration(Viewer& viewer, const Json& value) {
  viewer.set_iteration(value.get<int64_t>());
  return {};
}
Status set_expand(Viewer& viewer, const Json& value) {
  constexpr std::array<std::string_view, 2> kHow = {"all", "none"};
  if (PX_TRY(index_in(kHow, value)) == 0) {
    open_all(viewer);
  } else {
    close_all(viewer);
  }
  return {};
}
Status set_fit(Viewer& viewer, const Json& value) {
  if (!value.get<bool>()) return {};
  viewer.graph.fit();
  viewer.graph_b.fit();
  return {};
}
Status set_zoom(Viewer& viewer, const Json& value) {
  const float factor = value.get<float>() / viewer.graph.camera.zoom;
  viewer.graph.zoom_at(viewer.graph.canvas_width / 2, viewer.graph.canvas_height / 2, factor);
  viewer.graph.center_on(viewer.item());
  return {};
}
Status set_maximized(Viewer& viewer, const Json& value) {
  viewer.tensor_maximized = value.get<bool>();
  return {};
}
Status set_legend(Viewer& viewer, const Json& value) {
  viewer.show_legend = value.get<bool>();
  return {};
}

Status set_marks(Viewer& viewer, const Json& value) {
  viewer.set_bookmarks(value.get<std::vector<std::string>>());
  return {};
}
// Titles from the outermost group to the one that is open; those of groups that are gone are left out.
Status open_groups(Viewer& viewer, GraphView& graph, const Json& value) {
  if (!graph.has_graph()) return {};
  const GraphItems& items = graph.items();
  for (const auto& titles : value.get<std::vector<std::vector<std::string>>>()) {
    int32_t at = 0;
    for (const std::string& title : titles) {
      const auto& children = items.item(at).children;
      const auto found = std::ranges::find(children, title, [&](int32_t child) { return items.item(child).title; });
      at = found == children.end() ? 0 : *found;
      if (at == 0) break;
    }
    if (at != 0) viewer.set_open(graph, at, true);
  }
  return {};
}
Status set_opened(Viewer& viewer, const Json& value) {
  close_all(viewer);
  return open_groups(viewer, viewer.graph, value);
}
// Counterparts of A's open groups are open already.
Status set_opened_b(Viewer& viewer, const Json& value) { return open_groups(viewer, viewer.graph_b, value); }
Status look_at(GraphView& graph, const Json& value) {
  const auto numbers = value.get<std::array<float, 3>>();
  if (!graph.has_graph()) return {};
  graph.camera = {numbers[0], numbers[1], numbers[2]};
  graph.move(0, 0);  // an edge of the graph stays in sight
  return {};
}
Status set_camera(Viewer& viewer, const Json& value) { return look_at(viewer.graph, value); }
Status set_camera_b(Viewer& viewer, const Json& value) { return look_at(viewer.graph_b, value); }
Status set_shapes(Viewer& viewer, const Json& value) {
  viewer.graph.shows_shapes = value.get<bool>();
  return {};
}

struct KeyRow {
  std::string_view key;
  Status (*apply)(Viewer&, const Json&);
};
constexpr std::array<KeyRow, 30> kKeys = {{{"select", select},
                                           {"colour_by", set_color_by},
                                           {"search", set_search},
                                           {"preset", set_preset},
                                           {"tab", set_tab},
                                           {"theme", set_theme},
                                           {"mode", set_mode},
                                           {"split", set_split},
                                           {"montage", set_montage},
                                           {"brush", set_brush},
                                           {"list", set_list},
                                           {"whole", set_whole},
                                           {"flips_axis", set_flips_axis},
                                           {"linear_counts", set_linear_counts},
                                           {"slice", set_slice},
                                           {"element", set_element},
                                           {"iteration", set_iteration},
                                           {"expand", set_expand},
                                           {"fit", set_fit},
                                           {"zoom", set_zoom},
                                           {"maximise_tensor", set_maximized},
                                           {"legend", set_legend},
                                           {"marks", set_marks},
                                           {"opened", set_opened},
                                           {"camera", set_camera},
                                           {"select_b", select_b},
                                           {"opened_b", set_opened_b},
                                           {"camera_b", set_camera_b},
                                           {"shapes", set_shapes},
                                           {"files", [](Viewer&, const Json&) { return Status(); }}}};

Status apply_key(Viewer& viewer, const std::string& key, const Json& value) {
  for (const KeyRow& row : kKeys) {
    if (row.key == key) return row.apply(viewer, value);
  }
  return usage_error("there is no such key; keys are those that --state-out writes");
}

}  // namespace

Status apply_view(Viewer& viewer, const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) return usage_error("state: a JSON object is expected");
    for (const auto& [key, value] : json.items())
      PX_TRY_CONTEXT(fmt::format("state: '{}'", key), apply_key(viewer, key, value));
  } catch (const nlohmann::json::exception& error) {
    return usage_error(fmt::format("state: {}", error.what()));
  }
  return {};
}

Status apply_session(Viewer& viewer, const std::string& text, bool looks_there) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return usage_error("the view that was kept is no JSON object");
  if (!looks_there) {
    for (const char* key : {"select", "select_b", "camera", "camera_b", "opened", "opened_b"}) json.erase(key);
  }
  return apply_view(viewer, json.dump());
}

std::vector<std::string> files_of_view(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  std::vector<std::string> files;
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array()) return files;
  for (const Json& file : json["files"]) {
    if (file.is_string()) files.push_back(file.get<std::string>());
  }
  return files;
}

}  // namespace parallax
