// import_dump: shows the values of an origin to a dump writer, as an executor would.
#include <deque>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"
#include "inspector/dump/convert.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/dump/origin.h"

namespace parallax {
namespace {

using Json = nlohmann::json;
using NameMap = std::map<std::string, std::string>;

Result<NameMap> read_map(const std::string& path) {
  NameMap names;
  if (path.empty()) return names;
  const std::string text = PX_TRY(read_file(path));
  const Json json = Json::parse(text, nullptr, false);
  const auto refused = [&path] {
    return usage_error("'" + path + "' is no JSON object of texts: {\"foreign name\": \"value path\"}");
  };
  if (!json.is_object()) return refused();
  for (const auto& [foreign, target] : json.items()) {
    if (!target.is_string()) return refused();
    names[foreign] = target.get<std::string>();
  }
  return names;
}

// A foreign name that reads as a value path is one: exports write paths. Any other is the name of a value.
std::string path_of(const std::string& name) { return parse_value_path(name).ok() ? name : escape_name(name); }

class Importer {
 public:
  Importer(DumpWriter& writer, std::shared_ptr<const Model> model) : writer_(writer), model_(std::move(model)) {}

  Status run(const ImportRequest& request, const std::vector<dump::OriginValue>& values, const NameMap& names) {
    RunInfo run;
    run.executor = "import";
    run.device = "none";
    run.settings = {{"origin", request.origin}};
    run.model = model_;
    if (model_ != nullptr) run.model_sha256 = model_sha256(*model_);
    PX_TRY(writer_.begin_run(run));
    for (const dump::OriginValue& value : values) {
      const auto renamed = names.find(value.named.name);
      PX_TRY(show(value, renamed == names.end() ? path_of(value.named.name) : renamed->second));
    }
    return writer_.end_run(true);
  }

  const ImportReport& report() const { return report_; }

 private:
  Status show(const dump::OriginValue& value, const std::string& path) {
    auto parsed = parse_value_path(path);
    if (!parsed.ok()) return usage_error("'" + path + "' is no value path: " + parsed.error().message);
    if (!paths_.insert(path).second) return usage_error("two values would have the path '" + path + "'");
    ValueSite site;
    site.id = static_cast<int32_t>(report_.values);
    site.role = value.role;
    site.is_graph_output = value.is_graph_output;
    site.name = parsed->name;
    site.escaped_name = escape_name(parsed->name);
    if (parsed->frames.empty()) describe(site);
    FrameStack frames;
    for (const Frame& frame : parsed->frames) frames.push(frame);
    ++report_.values;
    return writer_.observe({site, frames, value.named.value, nullptr, nullptr});
  }

  // What the model says of a value of its main graph.
  void describe(ValueSite& site) {
    const ValueId id = model_ == nullptr ? kNoValue : model_->graph.find_value(site.name);
    if (model_ != nullptr && id == kNoValue)
      report_.notes.push_back(fmt::format("'{}' is no value of the model", site.name));
    if (id == kNoValue) return;
    ++report_.matched;
    const ValueDef& value = model_->graph.values[static_cast<size_t>(id)];
    site.graph = &model_->graph;
    site.value = id;
    site.is_graph_output = value.is_graph_output;
    site.role = value.producer != kNoNode                               ? ValueSite::Role::node_output
                : value.initializer_index >= 0 && value.input_index < 0 ? ValueSite::Role::initializer
                                                                        : ValueSite::Role::input;
    if (value.producer == kNoNode) return;
    const Node& node = model_->graph.nodes[static_cast<size_t>(value.producer)];
    site.node = node.display_name;
    site.op = node.op_type;
    site.domain = node.domain;
    site.output_index = value.output_index;
  }

  DumpWriter& writer_;
  std::shared_ptr<const Model> model_;
  std::set<std::string> paths_;
  ImportReport report_;
};

}  // namespace

Result<ImportReport> import_dump(const ImportRequest& request, const std::string& target) {
  std::shared_ptr<const Model> model;
  if (!request.model.empty()) model = PX_TRY(import_model(request.model));
  const NameMap names = PX_TRY(read_map(request.map));
  const auto values = PX_TRY(dump::read_origin(request.origin, model == nullptr ? nullptr : &model->graph));
  std::set<std::string> present;
  for (const dump::OriginValue& value : values) present.insert(value.named.name);
  for (const auto& [foreign, path] : names) {
    if (!present.contains(foreign))
      return usage_error(fmt::format("'{}' maps '{}', which '{}' does not hold", request.map, foreign, request.origin));
  }
  const auto writer = PX_TRY(DumpWriter::create(target, {}));
  Importer importer(*writer, model);
  PX_TRY(importer.run(request, values, names));
  PX_TRY(writer->finish());
  return importer.report();
}

}  // namespace parallax
