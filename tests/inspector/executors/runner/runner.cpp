// SPDX-License-Identifier: Apache-2.0
// A program that answers the protocol of FOREIGN.md with the executor `cpu`, and misbehaves in the ways that its
// options name. Nodes are those of the model that is loaded:
//   --observes         writes a dump of all values; else an .npz of the outputs
//   --crash-at NODE    ends by SIGSEGV in a run of a model with this node; --crash-once FILE: unless FILE is there
//   --exit-at NODE     ends with exit code 3
//   --refuse-at NODE   answers an error that names no node
//   --hang-at NODE     does not answer
//   --leak-at NODE     takes memory until it is ended
//   --garbage          prints a line on stdout before each answer to a run
//   --without VALUE    leaves it out of the answer
//   --offset NUMBER    adds it to the elements of all outputs that are float32; not with --observes
//   --answer FILE      the answer is FILE, which it does not write
//   --note             adds a note for the user
//   --log FILE         appends a line for each request
//   --list-models FILE    appends the number of model files that are there when one is loaded
//   --crash-at-load NODE  ends by SIGSEGV where a model with this node is loaded
//   --exit-after-answer   ends after an answer to a run
//   --twice            answers each request by two lines
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "inspector/base/thread_pool.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"

namespace parallax {
namespace {

using nlohmann::json;

class NodeTimes final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::none; }
  bool wants_node_times() const override { return true; }
  Status node_done(const NodeLocation& node, double elapsed_ms) override {
    milliseconds[std::string(node.node)] += elapsed_ms;
    return {};
  }
  std::map<std::string, double> milliseconds;
};

class Runner {
 public:
  explicit Runner(const std::vector<std::string>& words) {
    for (size_t index = 0; index < words.size(); ++index) {
      const bool has_value = index + 1 < words.size() && !words[index + 1].starts_with("--");
      options_[words[index]] = has_value ? words[index + 1] : "";
      index += has_value ? 1 : 0;
    }
  }

  Result<json> answer(const json& request) {
    const std::string name = request.at("request");
    if (options_.contains("--log")) std::ofstream(options_["--log"], std::ios::app) << name << "\n";
    if (name == "describe") {
      return json{{"name", "runner"},
                  {"version", "1"},
                  {"device", "a device of the test"},
                  {"settings", {{"kind", "test"}}},
                  {"observes", options_.contains("--observes")}};
    }
    return name == "load" ? load(request) : run(request);
  }
  bool has(const char* option) const { return options_.contains(option); }

 private:
  static int model_files(const std::string& folder) {
    const std::filesystem::recursive_directory_iterator files(folder);
    return static_cast<int>(
        std::ranges::count(files, ".onnx", [](const auto& entry) { return entry.path().extension(); }));
  }

  // True where the option names a node of the model.
  bool is_at(const char* option) const {
    const auto found = options_.find(option);
    return found != options_.end() && model_->graph.find_node(found->second) != kNoNode;
  }

  Result<json> load(const json& request) {
    set_thread_count(request.at("threads"));
    model_ = PX_TRY(import_model(request.at("model").get<std::string>()));
    if (is_at("--crash-at-load")) ::raise(SIGSEGV);
    if (options_.contains("--list-models"))
      std::ofstream(options_["--list-models"], std::ios::app) << model_files(request.at("folder")) << "\n";
    executor_ = PX_TRY(make_executor("cpu"));
    run_options_ = {};
    run_options_.observe_all = !request.at("optimize").get<bool>();
    run_options_.seed = request.at("seed");
    session_ = PX_TRY(executor_->prepare(model_, run_options_));
    return json::object();
  }

  void misbehave() {
    const bool is_again = options_.contains("--crash-once") && std::filesystem::exists(options_["--crash-once"]);
    if (is_at("--crash-at") && !is_again) {
      if (options_.contains("--crash-once")) std::ofstream(options_["--crash-once"]) << "once";
      std::cerr << "reading beyond the end\nabout to fall" << std::endl;
      ::raise(SIGSEGV);
    }
    if (is_at("--exit-at")) std::exit(3);
    while (is_at("--hang-at")) ::pause();
    constexpr size_t kBlock = size_t{16} << 20;
    for (size_t blocks = 0; is_at("--leak-at") && blocks < 64; ++blocks) {
      held_.emplace_back(kBlock, 'x');
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (options_.contains("--garbage")) std::cout << "loading plugins ..." << std::endl;
  }

  Result<std::vector<Value>> inputs_of(const json& request) const {
    std::map<std::string, Value> given;
    if (request.at("inputs").is_string()) {
      for (NamedValue& value : PX_TRY(read_npz(request.at("inputs").get<std::string>())))
        given[value.name] = std::move(value.value);
    }
    std::vector<Value> inputs;
    for (size_t index = 0; index < model_->graph.inputs.size(); ++index) {
      const ValueDef& input = value_at(model_->graph, model_->graph.inputs[index]);
      const std::string file = request.at("data_set").get<std::string>() + "/input_" + std::to_string(index) + ".pb";
      if (request.at("inputs").is_string()) {
        inputs.push_back(given[input.name]);
      } else if (std::filesystem::exists(file)) {
        NamedValue read = PX_TRY(read_value_file(file, input.type));
        inputs.push_back(std::move(read.value));
      } else {
        inputs.emplace_back();
      }
    }
    return inputs;
  }

  Result<Value> with_offset(const Value& value) const {
    const auto offset = options_.find("--offset");
    if (offset == options_.end() || !value.is_tensor() || value.tensor().dtype() != DType::float32) return value;
    Tensor moved = PX_TRY(value.tensor().clone());
    for (float& element : moved.mutable_as<float>()) element += std::stof(offset->second);
    return Value(std::move(moved));
  }

  Result<json> run(const json& request) {
    misbehave();
    if (is_at("--refuse-at")) return execution_error("a kernel failed");
    const std::vector<Value> inputs = PX_TRY(inputs_of(request));
    const std::string answer = request.at("answer");
    json result = {{"milliseconds", 0.25}};
    if (options_.contains("--note")) result["notes"] = {"the runner has run"};
    if (request.value("times", false)) {
      NodeTimes times;
      PX_TRY(session_->run(inputs, times));
      result["node_milliseconds"] = times.milliseconds;
    }
    result["answer"] = answer + (options_.contains("--observes") ? ".plx" : ".npz");
    if (options_.contains("--answer")) {
      result["answer"] = options_["--answer"];
      return result;
    }
    if (options_.contains("--observes")) {
      PX_TRY(write_dump(inputs, result["answer"]));
      return result;
    }
    NullObserver observer;
    const std::vector<Value> outputs = PX_TRY(session_->run(inputs, observer));
    std::vector<NamedValue> named;
    for (size_t index = 0; index < outputs.size(); ++index) {
      const std::string& name = value_at(model_->graph, model_->graph.outputs[index]).name;
      Value output = PX_TRY(with_offset(outputs[index]));
      if (!options_.contains("--without") || options_["--without"] != name) named.push_back({name, std::move(output)});
    }
    PX_TRY(write_npz(result["answer"], named));
    return result;
  }

  Status write_dump(const std::vector<Value>& inputs, const std::string& path) {
    const auto writer = PX_TRY(DumpWriter::create(path, {}));
    PX_TRY(writer->begin_run(describe_run(*executor_, run_options_, model_)));
    PX_TRY(session_->run(inputs, *writer));
    PX_TRY(writer->end_run(true));
    return writer->finish();
  }

  std::map<std::string, std::string> options_;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<Executor> executor_;
  RunOptions run_options_;
  std::unique_ptr<Session> session_;
  std::vector<std::string> held_;
};

json failure(const Error& error) {
  constexpr std::pair<ErrorCode, const char*> kErrorNames[] = {{ErrorCode::usage, "usage"},
                                                               {ErrorCode::invalid_model, "invalid_model"},
                                                               {ErrorCode::unsupported, "unsupported"},
                                                               {ErrorCode::out_of_memory, "out_of_memory"}};
  json answer = {{"error", error.message}, {"code", "execution"}};
  for (const auto& [code, name] : kErrorNames) {
    if (code == error.code) answer["code"] = name;
  }
  if (!error.node.empty()) answer["node"] = error.node;
  return answer;
}

}  // namespace
}  // namespace parallax

int main(int count, char** words) {
  parallax::Runner runner(std::vector<std::string>(words + 1, words + count));
  for (std::string line; std::getline(std::cin, line);) {
    auto answer = runner.answer(nlohmann::json::parse(line));
    std::string lines = (answer.ok() ? *answer : parallax::failure(answer.error())).dump() + "\n";
    if (runner.has("--twice")) lines += lines;
    std::cout << lines << std::flush;
    if (runner.has("--exit-after-answer") && answer.ok() && answer->contains("answer")) return 0;
  }
}
