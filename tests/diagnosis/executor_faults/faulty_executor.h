// SPDX-License-Identifier: Apache-2.0
// FaultyExecutor: an executor with one mistake in it. It runs another executor on a model that was operated on, and
// hides the traces: whoever watches sees the names of the model that was given.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "inspector/exec/executor.h"
#include "inspector/model/ir.h"

namespace parallax::diagnosis {

// Works on one node of a graph. Values it adds are hidden from observers.
class Surgeon {
 public:
  using Attributes = std::vector<Attribute>;

  Surgeon(Graph& graph, size_t node, int64_t variation) : graph_(graph), node_(node), variation_(variation) {}

  Node& node() { return graph_.nodes[node_]; }
  int64_t variation() const { return variation_; }  // another number for every session

  void set(const std::string& attribute, int64_t value);
  void set(const std::string& attribute, float value);
  void set(const std::string& attribute, std::string value);
  void set(const std::string& attribute, std::vector<int64_t> value);
  void set(const std::string& attribute, std::vector<std::string> value);
  void rename_operator(const std::string& op);  // attributes go
  void swap_inputs(size_t first, size_t second);
  void drop_input(size_t index);
  void read_instead(size_t index, const std::string& value);

  // An input or output led through further operators.
  ValueId input(size_t index) { return node().inputs[index]; }
  void replace_input(size_t index, ValueId value) { node().inputs[index] = value; }
  ValueId take_output(size_t index = 0);  // a hidden value the node now writes to
  void give_output(ValueId value);        // what the output's readers see

  ValueId emit(const std::string& op, const std::vector<ValueId>& inputs, const Attributes& attributes = {});
  ValueId numbers(const std::vector<int64_t>& values);
  ValueId number(float value);
  ValueId constant(Tensor tensor);
  ValueId through(DType narrow, ValueId value);  // cast there and back
  ValueId sliced(ValueId value, int64_t axis, int64_t from, int64_t to);
  ValueId rolled(ValueId value, int64_t axis);  // the first element becomes the last
  ValueId transposed(ValueId value, std::vector<int64_t> order);

 private:
  ValueId add_value();

  Graph& graph_;
  size_t node_;
  int64_t variation_;
  ValueId given_ = kNoValue;
};

struct Fault {
  std::string name;
  std::string sample;  // folder below samples/
  std::string base;    // the executor that is spoilt
  std::string op;
  int nth = -1;             // which node of that operator, bodies included; -1: every one, as a kernel would
  bool in_context = false;  // shows only when the node is run among others: planner, in-place, layout, fusion
  std::string says;         // part of what the cause has to say; empty: anything
  void (*strike)(Surgeon& surgeon) = nullptr;
};

// Display names of the nodes that a fault strikes in a model.
std::set<std::string> struck_nodes(const Fault& fault, const Model& model);

std::shared_ptr<Executor> make_faulty_executor(const Fault& fault, std::shared_ptr<Executor> base,
                                               std::set<std::string> struck);

}  // namespace parallax::diagnosis
