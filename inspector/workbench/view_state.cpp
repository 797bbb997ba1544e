// The view as JSON, both ways.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/render/report_json.h"
#include "inspector/workbench/viewer.h"

namespace parallax {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> kPresets = {"all", "graph", "tensor", "table"};
constexpr std::array<std::string_view, 3> kTabs = {"alerts", "table", "causes"};

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string_view name_of_mode(TensorMode mode) { return tensor_modes()[static_cast<size_t>(mode)].name; }

Json selection_json(const Viewer& viewer) {
  const Document& document = *viewer.document();
  Json json{{"path", nullptr}, {"node", nullptr}, {"op", nullptr}, {"verdict", nullptr}};
  if (viewer.row() >= 0) {
    const ValueRow& row = document.rows[static_cast<size_t>(viewer.row())];
    json["path"] = row.path;
    json["node"] = row.node;
    json["op"] = row.op;
    if (const ValueComparison* value = document.compared(viewer.row()); value != nullptr) {
      json["verdict"] = name_of(value->verdict);
      json["severity"] = number(value->severity);
    }
  }
  if (viewer.item() >= 0) json["item"] = document.items->item(viewer.item()).title;
  return json;
}

Json inspector_json(const Viewer& viewer) {
  const InspectorView view = viewer.inspector();
  Json sections = Json::array();
  for (const InspectorSection& section : view.sections) {
    Json lines = Json::array();
    for (const InspectorLine& line : section.lines) {
      lines.push_back(line.b.empty() ? Json{line.key, line.a} : Json{line.key, line.a, line.b});
    }
    sections.push_back({{"title", section.title}, {"lines", lines}});
  }
  return {{"title", view.title}, {"subtitle", view.subtitle}, {"command", view.command}, {"sections", sections}};
}

Json tensor_json(const Viewer& viewer) {
  const TensorPane& pane = viewer.tensor();
  if (!pane.model.has_value()) return {{"problem", pane.problem}};
  const TensorModel& model = *pane.model;
  Json json{{"dtype", name_of(model.dtype())},
            {"shape", std::vector<int64_t>(model.shape().begin(), model.shape().end())},
            {"mode", name_of_mode(pane.mode)},
            {"slice", model.slice_text()},
            {"rows", model.rows()},
            {"columns", model.columns()},
            {"range", {number(pane.range.low), number(pane.range.high)}},
            {"specials_only", pane.specials_only},
            {"element", nullptr}};
  if (pane.element < 0) return json;
  const ElementView element = model.describe(pane.element);
  json["element"] = {{"index", element.index}, {"a", element.a},
                     {"b", element.b},         {"hex_a", element.hex_a},
                     {"hex_b", element.hex_b}, {"difference", element.difference},
                     {"ulp", element.ulp},     {"severity", element.severity}};
  return json;
}

Json graph_json(Viewer& viewer) {
  GraphView& graph = viewer.graph;
  const Scene& scene = graph.scene();
  int64_t led = 0, stubs = 0, frames = 0;
  for (const SceneWire& wire : scene.wires) (wire.kind == EdgeKind::led ? led : stubs)++;
  for (const SceneBox& box : scene.boxes) frames += box.is_open;
  Json open = Json::array();
  for (size_t i = 1; i < graph.items().items().size(); ++i) {
    const auto item = static_cast<int32_t>(i);
    if (graph.is_open(item) && open.size() < 1000) open.push_back(graph.items().item(item).title);
  }
  return {{"nodes", graph.items().item(0).node_count},
          {"boxes", scene.boxes.size()},
          {"frames", frames},
          {"wires", led},
          {"stubs", stubs},
          {"open", open},
          {"colour_by", colourings()[static_cast<size_t>(graph.colour_by())].name},
          {"zoom", graph.camera.zoom},
          {"width", scene.width},
          {"height", scene.height}};
}

Json lists_json(const Viewer& viewer) {
  const Document& document = *viewer.document();
  constexpr size_t kMost = 200;
  Json alerts = Json::array(), rows = Json::array(), causes = Json::array();
  for (size_t i = 0; i < std::min(kMost, viewer.alerts().size()); ++i) {
    const Alert& alert = viewer.alerts()[i];
    alerts.push_back({{"path", document.rows[static_cast<size_t>(alert.row)].path}, {"text", alert.text}});
  }
  for (size_t i = 0; i < std::min(kMost, viewer.table_rows().size()); ++i) {
    rows.push_back(document.rows[static_cast<size_t>(viewer.table_rows()[i])].path);
  }
  if (document.comparison != nullptr) {
    for (const Cause& cause : document.comparison->causes) {
      causes.push_back({{"rank", cause.rank}, {"node", cause.node}, {"why", cause.why}});
    }
  }
  return {{"alert_count", viewer.alerts().size()},
          {"alerts", alerts},
          {"row_count", viewer.table_rows().size()},
          {"rows", rows},
          {"causes", causes}};
}

// ---- reading ----

template <class Names>
Result<size_t> index_in(const Names& names, const std::string& key, const std::string& name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  return usage_error(fmt::format("state: '{}' cannot be '{}'", key, name));
}

std::vector<std::string_view> mode_names() {
  std::vector<std::string_view> names;
  for (const TensorModeInfo& mode : tensor_modes()) names.push_back(mode.name);
  return names;
}

std::vector<std::string_view> colouring_names() {
  std::vector<std::string_view> names;
  for (const ColourByInfo& colouring : colourings()) names.push_back(colouring.name);
  return names;
}

Status apply_element(Viewer& viewer, const Json& value) {
  if (!viewer.tensor().model.has_value()) return usage_error("state: 'element' needs a value with elements");
  const auto index = value.get<std::vector<int64_t>>();
  const int64_t element = viewer.tensor().model->element_of(index);
  if (element < 0) return usage_error("state: 'element' is not in the tensor");
  viewer.select_element(element);
  return {};
}

Status apply_slice(Viewer& viewer, const Json& value) {
  if (!viewer.tensor().model.has_value()) return usage_error("state: 'slice' needs a value with elements");
  const auto index = value.get<std::vector<int64_t>>();
  for (size_t axis = 0; axis < index.size(); ++axis)
    viewer.tensor().model->set_index(static_cast<int>(axis), index[axis]);
  viewer.refresh_range();
  return {};
}

Status apply_key(Viewer& viewer, const std::string& key, const Json& value) {
  if (key == "colour_by") {
    viewer.graph.set_colour_by(
        static_cast<ColourBy>(PX_TRY(index_in(colouring_names(), key, value.get<std::string>()))));
  } else if (key == "search") {
    viewer.set_search(value.get<std::string>());
  } else if (key == "preset") {
    viewer.preset = static_cast<Preset>(PX_TRY(index_in(kPresets, key, value.get<std::string>())));
  } else if (key == "tab") {
    viewer.left_tab = static_cast<LeftTab>(PX_TRY(index_in(kTabs, key, value.get<std::string>())));
  } else if (key == "theme") {
    viewer.is_dark = value.get<std::string>() != "light";
  } else if (key == "select") {
    if (!viewer.select_path(value.get<std::string>())) {
      return usage_error(fmt::format("state: there is no value or node '{}'", value.get<std::string>()));
    }
  } else if (key == "mode") {
    viewer.set_tensor_mode(static_cast<TensorMode>(PX_TRY(index_in(mode_names(), key, value.get<std::string>()))));
  } else if (key == "slice") {
    return apply_slice(viewer, value);
  } else if (key == "element") {
    return apply_element(viewer, value);
  } else if (key == "expand") {
    if (value.get<std::string>() == "all")
      viewer.graph.open_all();
    else
      viewer.graph.close_all();
  } else if (key == "fit") {
    if (value.get<bool>()) viewer.graph.fit();
  } else if (key == "zoom") {
    const float factor = value.get<float>() / viewer.graph.camera.zoom;
    viewer.graph.zoom_at(viewer.graph.canvas_width / 2, viewer.graph.canvas_height / 2, factor);
    viewer.graph.centre_on(viewer.item());
  } else if (key == "maximise_tensor") {
    viewer.tensor_maximised = value.get<bool>();
  } else if (key == "legend") {
    viewer.show_legend = value.get<bool>();
  } else if (key != "files") {
    return usage_error(fmt::format("state: there is no key '{}'", key));
  }
  return {};
}

}  // namespace

std::string view_to_json(Viewer& viewer) {
  Json json{{"files", Json::array()}, {"busy", viewer.is_busy()}, {"messages", viewer.messages}};
  json["preset"] = kPresets[static_cast<size_t>(viewer.preset)];
  json["tab"] = kTabs[static_cast<size_t>(viewer.left_tab)];
  json["theme"] = viewer.is_dark ? "dark" : "light";
  json["search"] = viewer.search();
  json["note"] = viewer.note;
  const Document* document = viewer.document();
  if (document == nullptr) return json_text(json);
  json["files"] = document->files;
  json["values"] = document->rows.size();
  json["verdict"] = document->comparison == nullptr ? Json(nullptr) : Json(name_of(document->comparison->verdict));
  json["selection"] = selection_json(viewer);
  json["lists"] = lists_json(viewer);
  if (viewer.graph.has_graph()) json["graph"] = graph_json(viewer);
  json["inspector"] = inspector_json(viewer);
  json["tensor"] = tensor_json(viewer);
  json["bookmarks"] = viewer.bookmarks().size();
  return json_text(json);
}

Status expect_view(Viewer& viewer, const std::string& pointer, const std::string& value) {
  try {
    const Json view = Json::parse(view_to_json(viewer));
    const Json found = view.at(Json::json_pointer(pointer));
    const Json wanted = Json::parse(value, nullptr, false);
    if (found == wanted || (found.is_string() && found.get<std::string>() == value)) return {};
    return usage_error(fmt::format("expected {} at {}, found {}", value, pointer, found.dump()));
  } catch (const nlohmann::json::exception& error) {
    return usage_error(fmt::format("expected {} at {}: {}", value, pointer, error.what()));
  }
}

Status apply_view(Viewer& viewer, const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) return usage_error("state: a JSON object is expected");
    for (const auto& [key, value] : json.items()) PX_TRY(apply_key(viewer, key, value));
  } catch (const nlohmann::json::exception& error) {
    return usage_error(fmt::format("state: {}", error.what()));
  }
  return {};
}

}  // namespace parallax
