// SPDX-License-Identifier: Apache-2.0
// The class Comparer of Python: two sides that stay prepared, compared at every call.
#include "inspector/workbench/comparer.h"

#include <mutex>

#include <fmt/format.h>

#include "inspector/exec/owned_outputs.h"
#include "inspector/python/binding/comparison.h"
#include "inspector/python/binding/interruptible.h"
#include "inspector/python/binding/job_request.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"

namespace parallax::python {
namespace {

class PythonComparer {
 public:
  explicit PythonComparer(const nb::dict& given) {
    Fields fields("Comparer", given);
    JobRequest job;
    take_models(fields, job, true);
    job.run.executors = take_executors(fields, job.run.has_against());
    take_inputs_and_mode(fields, job);
    take_policy(fields, job);
    job.run.only = fields.texts("only");
    fields.finish();
    job.run.error_pictures = true;
    job.run.message = nullptr;
    const nb::gil_scoped_release nogil;
    comparer_ = unwrap(Comparer::create(std::move(job.run), executor_factory()));
  }

  // Outputs of B, the comparison, outputs of A: dictionaries for inputs by name, else lists.
  nb::tuple run(nb::handle inputs, nb::handle kind, bool find_causes) {
    const bool is_named = PyDict_Check(inputs.ptr()) != 0;
    const nb::object arrays = is_named ? nb::object(nb::borrow<nb::dict>(inputs).values()) : nb::borrow(inputs);
    const ArrayKind wanted = kind.is_none() ? kind_of_arrays(arrays) : array_kind_of(nb::cast<std::string>(kind));
    const std::vector<Value> values = is_named ? named_values(inputs) : values_in_order(inputs);
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    {
      const nb::gil_scoped_release nogil;  // whoever holds the lock may want it
      lock.lock();
    }
    Caller caller(comparer_->cancel_token());
    ComparedCall call = caller.run([&]() -> Result<ComparedCall> {
      ComparedCall made = PX_TRY(comparer_->run(values, find_causes));
      PX_TRY(separate_outputs(made.outputs_a));
      PX_TRY(separate_outputs(made.outputs_b));
      return made;
    });
    lock.unlock();
    ComparisonHandle comparison{
        std::make_shared<const Comparison>(std::move(call.comparison)), comparer_->model_a(), {}, {}, {}};
    return nb::make_tuple(outputs_of(*comparer_->model_b(), call.outputs_b, wanted, is_named), std::move(comparison),
                          outputs_of(*comparer_->model_a(), call.outputs_a, wanted, is_named));
  }

 private:
  std::vector<Value> named_values(nb::handle inputs) const {
    const Graph& graph = comparer_->model_a()->graph;
    std::map<std::string, Value> given = values_by_name(*comparer_->model_a(), inputs);
    std::vector<Value> values;
    for (const ValueId id : graph.inputs) {
      const auto found = given.find(value_at(graph, id).name);
      if (found == given.end() && needs_value(value_at(graph, id))) refuse_missing(id);
      values.push_back(found == given.end() ? Value() : std::move(found->second));
      if (found != given.end()) given.erase(found);
    }
    if (!given.empty())
      raise(usage_error(fmt::format("the mapping of inputs names '{}', which is no input of the model (its inputs: {})",
                                    given.begin()->first, input_names())));
    return values;
  }

  std::vector<Value> values_in_order(nb::handle inputs) const {
    const Graph& graph = comparer_->model_a()->graph;
    std::vector<Value> values;
    for (nb::handle array : inputs) {
      if (values.size() == graph.inputs.size())
        raise(usage_error(fmt::format("{} inputs are given; the model has {}: {}", nb::len(inputs), graph.inputs.size(),
                                      input_names())));
      const ValueDef& input = value_at(graph, graph.inputs[values.size()]);
      values.push_back(value_from(array, input.type, fmt::format("input '{}'", input.name)));
    }
    while (values.size() < graph.inputs.size()) {
      const ValueId id = graph.inputs[values.size()];
      if (needs_value(value_at(graph, id))) refuse_missing(id);
      values.emplace_back();
    }
    return values;
  }

  static bool needs_value(const ValueDef& input) {
    return input.initializer_index < 0 && input.sparse_initializer_index < 0;
  }

  [[noreturn]] void refuse_missing(ValueId id) const {
    const ValueDef& input = value_at(comparer_->model_a()->graph, id);
    raise(usage_error(fmt::format("input '{}' is missing; it must be {} (inputs: {})", input.name,
                                  to_string(input.type), input_names())));
  }

  std::string input_names() const {
    const Graph& graph = comparer_->model_a()->graph;
    std::string names;
    for (const ValueId id : graph.inputs) names += (names.empty() ? "'" : ", '") + value_at(graph, id).name + "'";
    return names.empty() ? "none" : names;
  }

  static nb::object outputs_of(const Model& model, std::vector<Value>& values, ArrayKind kind, bool is_named) {
    nb::dict named;
    nb::list listed;
    for (size_t index = 0; index < values.size(); ++index) {
      nb::object array = value_to_python(values[index], kind, true);
      values[index] = Value();
      if (is_named) {
        named[nb::cast(value_at(model.graph, model.graph.outputs[index]).name)] = array;
      } else {
        listed.append(array);
      }
    }
    return is_named ? nb::object(named) : nb::object(listed);
  }

  std::mutex mutex_;
  std::unique_ptr<Comparer> comparer_;
};

}  // namespace

void bind_comparer(nb::module_& module) {
  nb::class_<PythonComparer>(module, "Comparer", nb::is_weak_referenceable(),
                             "Two sides that are prepared once and compared at every call.")
      .def(nb::init<const nb::dict&>(), nb::arg("request"),
           nb::sig("def __init__(self, request: dict[str, typing.Any]) -> None"))
      .def("run", &PythonComparer::run, nb::arg("inputs"), nb::arg("kind") = nb::none(), nb::arg("find_causes") = false,
           nb::sig("def run(self, inputs: typing.Any, kind: str | None = None, find_causes: bool = False) -> "
                   "tuple[typing.Any, Comparison, typing.Any]"),
           "Returns B's outputs, the comparison and A's outputs.");
}

}  // namespace parallax::python
