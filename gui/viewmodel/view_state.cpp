// SPDX-License-Identifier: Apache-2.0
// The view as JSON: what is shown.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gui/viewmodel/view_state_names.h"
#include "inspector/exec/executor_names.h"
#include "inspector/render/report_json.h"
#include "inspector/render/structure_report.h"

namespace parallax {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

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
  const InspectorView& view = viewer.inspector();
  Json sections = Json::array();
  for (const InspectorSection& section : view.sections) {
    Json lines = Json::array();
    for (const InspectorLine& line : section.lines) {
      lines.push_back(line.b.empty() ? Json{key_text(line), line.a} : Json{key_text(line), line.a, line.b});
    }
    sections.push_back({{"title", section.title}, {"lines", lines}});
  }
  return {{"title", view.title}, {"subtitle", view.subtitle}, {"command", view.command}, {"sections", sections}};
}

Json tensor_json(const Viewer& viewer) {
  const TensorPane& pane = viewer.tensor();
  if (pane.texts.has_value()) {
    constexpr size_t kMost = 200;
    Json lines = Json::array();
    for (size_t i = 0; i < std::min(kMost, pane.texts->lines.size()); ++i) {
      const TextLine& line = pane.texts->lines[i];
      lines.push_back({{"place", line.location}, {"a", line.a}, {"b", line.b}, {"apart", line.are_mismatched}});
    }
    return {{"texts", lines}};
  }
  if (!pane.model.has_value()) return {{"problem", pane.problem}};
  const TensorModel& model = *pane.model;
  Json json{{"dtype", name_of(model.dtype())},
            {"shape", std::vector<int64_t>(model.shape().begin(), model.shape().end())},
            {"mode", tensor_modes()[static_cast<size_t>(pane.mode)].name},
            {"slice", model.slice_text()},
            {"rows", model.rows()},
            {"columns", model.columns()},
            {"range", {number(pane.range.low), number(pane.range.high)}},
            {"specials_only", pane.filter.specials_only},
            {"split", pane.is_split},
            {"montage", model.montage_axis() >= 0},
            {"list", kTensorTabs[static_cast<size_t>(pane.tab)]},
            {"linear_counts", pane.linear_counts},
            {"whole", pane.counts_whole()},
            {"flips_axis", pane.flips_axis},
            {"brush", nullptr},
            {"element", nullptr}};
  if (pane.filter.brush.has_value()) json["brush"] = {number(pane.filter.brush->low), number(pane.filter.brush->high)};
  if (pane.element < 0) return json;
  const ElementView element = model.describe(pane.element);
  json["element"] = {{"index", element.index}, {"a", element.a},
                     {"b", element.b},         {"hex_a", element.hex_a},
                     {"hex_b", element.hex_b}, {"difference", element.difference},
                     {"ulp", element.ulp},     {"severity", element.severity}};
  if (!model.has_b() && pane.mode == TensorMode::b) {
    std::swap(json["element"]["a"], json["element"]["b"]);
    std::swap(json["element"]["hex_a"], json["element"]["hex_b"]);
  }
  return json;
}

Json graph_json(GraphView& graph) {
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
          {"iteration", graph.iteration()},
          {"colour_by", colorings()[static_cast<size_t>(graph.color_by())].name},
          {"shapes", graph.shows_shapes},
          {"zoom", graph.camera.zoom},
          {"width", scene.width},
          {"height", scene.height}};
}

// Each group that is open, as its titles from the outermost on: "open" has the innermost alone, for people.
Json opened_groups(const GraphView& graph) {
  const GraphItems& items = graph.items();
  Json groups = Json::array();
  for (size_t i = 1; i < items.items().size(); ++i) {
    const auto item = static_cast<int32_t>(i);
    if (!graph.is_open(item)) continue;
    std::vector<std::string> titles;
    for (int32_t at = item; at > 0; at = items.item(at).parent) titles.insert(titles.begin(), items.item(at).title);
    groups.push_back(titles);
  }
  return groups;
}

Json lists_json(const Viewer& viewer) {
  const Document& document = *viewer.document();
  constexpr size_t kMost = 200;
  Json alerts = Json::array(), rows = Json::array(), causes = Json::array(), explained = Json::array();
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
  for (size_t i = 0; i < std::min(kMost, viewer.explained().size()); ++i) {
    const ValueComparison& value = *document.compared(viewer.explained()[i]);
    explained.push_back({{"path", value.path}, {"reason", value.accepted->reason}});
  }
  return {{"alert_count", viewer.alerts().size()},
          {"alerts", alerts},
          {"explained_count", viewer.explained().size()},
          {"explained", explained},
          {"row_count", viewer.table_rows().size()},
          {"rows", rows},
          {"causes", causes}};
}

// Two models: their verdict, B's graph, and what differs.
void add_models(Viewer& viewer, Json& json) {
  const TwoModels& models = *viewer.models();
  if (viewer.document()->comparison == nullptr) {
    json["verdict"] = models.structure->is_same() ? "same" : "different";
    json["reason"] = models.verdict_text();
  }
  json["graph_b"] = graph_json(viewer.graph_b);
  Json& selection = json["selection"];
  selection["item_b"] = nullptr;
  if (viewer.item_b() >= 0) selection["item_b"] = models.b->items->item(viewer.item_b()).title;
  selection["difference"] = nullptr;
  if (viewer.difference_at() >= 0) selection["difference"] = viewer.difference_at();
  constexpr size_t kMost = 200;
  Json differences = Json::array();
  for (size_t i = 0; i < std::min(kMost, models.differences.size()); ++i) {
    const ModelDifference& difference = models.differences[i];
    differences.push_back(
        {{"kind", name_of(difference.kind)}, {"title", difference.title}, {"sentences", difference.sentences}});
  }
  json["lists"]["difference_count"] = models.differences.size();
  json["lists"]["differences"] = differences;
}

}  // namespace

namespace {

// The selected value. One that B alone has may be called as another one of A is.
void add_selected_path(const Viewer& viewer, Json& json) {
  if (viewer.row() < 0) return;
  const ValueRow& row = viewer.document()->rows[static_cast<size_t>(viewer.row())];
  json[row.is_only_b ? "select_b" : "select"] = row.path;
}

void add_camera(const GraphView& graph, const char* key, Json& json) {
  if (graph.has_graph() && !graph.is_fitted) json[key] = {graph.camera.x, graph.camera.y, graph.camera.zoom};
}

}  // namespace

std::string session_to_json(const Viewer& viewer) {
  const Document& document = *viewer.document();
  Json json{{"files", Json::array()}};
  std::error_code unknown;  // what cannot be resolved is named as it was
  for (const std::string& file : document.files)
    json["files"].push_back(std::filesystem::absolute(file, unknown).string());
  json["tab"] = kTabs[static_cast<size_t>(viewer.left_tab)];
  json["search"] = viewer.search();
  Json marks = Json::array();
  for (const int32_t row : viewer.bookmarks()) marks.push_back(document.rows[static_cast<size_t>(row)].path);
  json["marks"] = marks;
  const GraphView& graph = viewer.graph;
  if (graph.has_graph()) {
    json["colour_by"] = colorings()[static_cast<size_t>(graph.color_by())].name;
    json["opened"] = opened_groups(graph);
  }
  if (viewer.models() != nullptr) json["opened_b"] = opened_groups(viewer.graph_b);
  add_selected_path(viewer, json);
  add_camera(graph, "camera", json);
  add_camera(viewer.graph_b, "camera_b", json);
  return json.dump(1) + "\n";
}

std::string view_to_json(Viewer& viewer, std::span<const NamedRectangle> locations) {
  Json json{{"files", Json::array()}, {"busy", viewer.is_busy()}, {"messages", viewer.messages}};
  json["preset"] = kPresets[static_cast<size_t>(viewer.preset)];
  json["tab"] = kTabs[static_cast<size_t>(viewer.left_tab)];
  json["theme"] = viewer.is_dark ? "dark" : "light";
  json["search"] = viewer.search();
  json["note"] = viewer.note;
  json["dialog"] = viewer.show_help      ? "help"
                   : viewer.show_palette ? "palette"
                   : viewer.show_open    ? "open"
                   : viewer.show_run     ? "run"
                   : viewer.show_export  ? "export"
                   : viewer.show_replace ? "replace"
                   : viewer.show_goto    ? "goto"
                                         : "";
  for (const NamedRectangle& location : locations) json["widgets"][location.name] = {location.x, location.y};
  const Document* document = viewer.document();
  if (document == nullptr) return json_text(json);
  json["files"] = document->files;
  json["values"] = document->rows.size();
  json["verdict"] = document->comparison == nullptr ? Json(nullptr) : Json(name_of(document->comparison->verdict));
  json["reason"] = document->comparison == nullptr ? "" : explain_of(*document->comparison);
  json["selection"] = selection_json(viewer);
  json["lists"] = lists_json(viewer);
  if (viewer.graph.has_graph()) json["graph"] = graph_json(viewer.graph);
  if (viewer.models() != nullptr) add_models(viewer, json);
  json["inspector"] = inspector_json(viewer);
  json["tensor"] = tensor_json(viewer);
  json["bookmarks"] = viewer.bookmarks().size();
  for (const OtherRun& run : viewer.other_runs()) {
    const Comparison* compared = run.document == nullptr ? nullptr : run.document->comparison.get();
    json["runs"].push_back(
        {{"file", run.file}, {"verdict", compared == nullptr ? Json(nullptr) : Json(name_of(compared->verdict))}});
  }
  if (!viewer.other_runs().empty()) json["run"] = viewer.shown_run() + 1;
  return json_text(json);
}

std::string view_command(Viewer& viewer) {
  const Document* document = viewer.document();
  if (document == nullptr) return "";
  Json state = Json::object();
  add_selected_path(viewer, state);
  if (viewer.graph.has_graph()) state["colour_by"] = colorings()[static_cast<size_t>(viewer.graph.color_by())].name;
  if (!viewer.search().empty()) state["search"] = viewer.search();
  const TensorPane& pane = viewer.tensor();
  if (pane.model.has_value()) {
    state["mode"] = tensor_modes()[static_cast<size_t>(pane.mode)].name;
    if (pane.chosen_whole.has_value()) state["whole"] = *pane.chosen_whole;
    if (pane.element >= 0) {
      state["element"] = pane.model->multi_index(pane.element);
    } else if (!pane.model->index().empty()) {
      state["slice"] = std::vector<int64_t>(pane.model->index().begin(), pane.model->index().end());
    }
  }
  std::string command = "parallax-gui";
  std::vector<std::string> files = document->files;
  if (document->run.has_value()) {  // its dumps are not kept: they are made again
    const auto& executors = document->run->executors;
    files = {fmt::format("out/A-{}.plx", file_name_of(executors.front())),
             fmt::format("out/B-{}.plx", file_name_of(executors.back()))};
    command = command_of(*document->run) + " --dump out; " + command;
  }
  for (const std::string& file : files) command += " " + shell_word(file);
  return command + " --state " + shell_word(json_text(state, -1));
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

}  // namespace parallax
