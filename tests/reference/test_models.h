// SPDX-License-Identifier: Apache-2.0
// Small models from ONNX text, and an observer that records its events.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/exec/executor.h"
#include "inspector/model/io/import.h"
#include "reference/reference.h"

namespace parallax::tests {

inline std::shared_ptr<const Model> parse(const std::string& graph, int opset = 17, const std::string& more = "") {
  const std::string text = "ir_version: 8\nopset_import { version: " + std::to_string(opset) + " }\n" + more +
                           "graph { name: 'g' " + graph + " }\n";
  auto model = import_model(std::as_bytes(std::span(text)), "", "a test's model");
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? *model : nullptr;
}

inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& more = "") {
  std::string text = "node { op_type: '" + op + "' name: '" + op + "_of_" + outputs[0] + "' ";
  for (const std::string& input : inputs) text += "input: '" + input + "' ";
  for (const std::string& output : outputs) text += "output: '" + output + "' ";
  return text + more + "}\n";
}

// An input or output: "input", "x", elem_type, dims; a dimension below 0 is left open.
inline std::string value(const std::string& field, const std::string& name, int elem_type,
                         const std::vector<int64_t>& dims = {}) {
  std::string text =
      field + " { name: '" + name + "' type { tensor_type { elem_type: " + std::to_string(elem_type) + " shape { ";
  for (int64_t dim : dims) text += dim < 0 ? "dim { } " : "dim { dim_value: " + std::to_string(dim) + " } ";
  return text + "} } } }\n";
}

class Recorder : public Observer {
 public:
  CaptureLevel wants(const ValueInfo& value_info) override {
    ++asked[value_info.id];
    return value_info.name.find("unwanted") == std::string_view::npos ? CaptureLevel::all : CaptureLevel::none;
  }
  Status begin_call(const CallInfo& call, std::span<const Value>) override { return note("begin " + call.graph); }
  Status enter_body(const NodeLocation&, const Frame& frame) override { return note("enter " + to_string(frame)); }
  Status leave_body(const NodeLocation&, const Frame& frame) override { return note("leave " + to_string(frame)); }
  Status observe(const Observation& seen) override {
    values.insert_or_assign(seen.path(), seen.value);
    if (seen.alias_of != nullptr) aliases.insert_or_assign(seen.path(), std::string(seen.alias_of->name));
    if (seen.path() == fail_at) return io_error("the observer is full");
    return note(seen.path());
  }
  Status node_failed(const NodeLocation& value_info, const FrameStack& frames, const Error& error) override {
    failure = error.message;
    return note("failed " + frames.prefix() + std::string(value_info.node));
  }
  Status end_call(const CallInfo&) override { return note("end"); }

  std::vector<std::string> events;
  std::map<std::string, Value> values;
  std::map<std::string, std::string> aliases;
  std::map<int32_t, int> asked;
  std::string failure;
  std::string fail_at;

 private:
  Status note(std::string event) {
    events.push_back(std::move(event));
    return {};
  }
};

inline Result<std::vector<Value>> run(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs,
                                      Observer& observer, const RunOptions& options = {},
                                      ReferencePrecision precision = ReferencePrecision::declared) {
  auto session = PX_TRY(make_reference_executor(precision)->prepare(model, options));
  return session->run(inputs, observer);
}

inline Value floats(const std::vector<float>& numbers) { return Tensor::vector<float>(numbers); }
inline Value whole(int64_t number) { return Tensor::scalar<int64_t>(number); }
inline Value truth(bool flag) { return Tensor::scalar<bool>(flag); }

}  // namespace parallax::tests
