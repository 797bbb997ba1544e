// SPDX-License-Identifier: Apache-2.0
// The class Session of Python: a model made ready on an executor, called with arrays.
#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "inspector/exec/executor.h"
#include "inspector/exec/owned_outputs.h"
#include "inspector/exec/rewrite_choice.h"
#include "inspector/exec/session_cloning.h"
#include "inspector/exec/session_states.h"
#include "inspector/executors/make_executor.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/observer.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"
#include "inspector/workbench/request_options.h"

namespace parallax::python {
namespace {

struct CallOptions {
  ArrayKind kind = ArrayKind::numpy;
  nb::handle observer;  // None, or an object with wants() and observe()
  CallInfo call;
  bool alias_outputs = false;
};

// A list of (input, output) or (input, output, axis).
std::vector<StateBinding> state_bindings(nb::handle given) {
  std::vector<StateBinding> bindings;
  for (nb::handle row : given) {
    const size_t count = nb::len(row);
    if (count < 2 || count > 3)
      raise(usage_error(
          fmt::format("states has {}; each must be (input, output) or (input, output, axis)", nb::repr(row).c_str())));
    StateBinding& binding = bindings.emplace_back();
    binding.input = nb::cast<std::string>(row[0]);
    binding.output = nb::cast<std::string>(row[1]);
    if (count == 3) binding.axis = nb::cast<int>(row[2]);
  }
  return bindings;
}

void set_option(RunOptions& options, const std::string& name, nb::handle value) {
  if (name == "rewrite") {
    options.rewrite = unwrap(parse_rewrite_choice("rewrite", nb::cast<std::string>(value)));
  } else if (name == "tf32") {
    options.tf32 = nb::cast<bool>(value);
  } else if (name == "keep_casts") {
    options.keep_casts = nb::cast<bool>(value);
  } else if (name == "observe_all") {
    options.observe_all = nb::cast<bool>(value);
  } else if (name == "seed") {
    options.seed = nb::cast<uint64_t>(value);
  } else if (name == "memory_limit") {
    std::string text;
    options.memory_limit_bytes =
        nb::try_cast(value, text) ? unwrap(parse_bytes("memory_limit", text)) : nb::cast<int64_t>(value);
    if (options.memory_limit_bytes <= 0)
      raise(usage_error(fmt::format("memory_limit is {}; it must be a positive number of bytes, or None for no limit",
                                    options.memory_limit_bytes)));
  } else if (name == "time_limit") {
    options.time_limit_s = nb::cast<double>(value);
    if (!(options.time_limit_s > 0))
      raise(usage_error(fmt::format("time_limit is {}; it must be a number of seconds above 0, or None for no limit",
                                    options.time_limit_s)));
  } else if (name == "accumulate") {
    const auto text = nb::cast<std::string>(value);
    if (text != "default" && text != "fp32")
      raise(usage_error(fmt::format("accumulate is '{}'; it must be 'default' or 'fp32'", text)));
    options.accumulate = text == "fp32" ? Accumulate::fp32 : Accumulate::default_;
  } else if (name == "states") {
    options.states = state_bindings(value);
  } else if (name == "fallback") {
    options.fallback = unwrap(make_executor(nb::cast<std::string>(value)));
  } else {
    raise(
        usage_error(fmt::format("there is no option '{}' (known: accumulate, fallback, keep_casts, memory_limit, "
                                "observe_all, rewrite, seed, states, tf32, time_limit)",
                                name)));
  }
}

RunOptions options_from(const nb::dict& given) {
  RunOptions options;
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (value.is_none()) continue;
    try {
      set_option(options, name, value);
    } catch (const nb::cast_error&) {
      raise(usage_error(fmt::format("option {} is {}; that is of the wrong type", name, nb::repr(value).c_str())));
    }
  }
  return options;
}

bool is_on_host(const Value& value) {
  if (value.is_tensor()) return value.tensor().device().is_host();
  if (value.is_sequence()) return std::ranges::all_of(value.sequence().items, is_on_host);
  if (value.is_optional()) return std::ranges::all_of(value.optional().item, is_on_host);
  return !value.is_map() || std::ranges::all_of(value.map().values, is_on_host);
}

// A model on an executor. Calls are made one after another, whichever threads they come from.
class PythonSession {
 public:
  PythonSession(const ModelHandle& model, const std::string& executor, const nb::dict& options)
      : PythonSession(model.model, nullptr, executor, options_from(options)) {}

  PythonSession(std::shared_ptr<const Model> model, std::shared_ptr<Executor> executor, const std::string& name,
                RunOptions options, std::unique_ptr<Session> session = nullptr)
      : model_(std::move(model)),
        executor_(std::move(executor)),
        options_(std::move(options)),
        session_(std::move(session)) {
    if (session_ == nullptr) {
      const nb::gil_scoped_release nogil;
      if (executor_ == nullptr) executor_ = unwrap(make_executor(name));
      session_ = unwrap(executor_->prepare(model_, options_));
    }
    takes_device_memory_ = executor_->name() == "cuda";
    const Graph& graph = model_->graph;
    for (const ValueId id : graph.inputs) input_names_.push_back(interned(value_at(graph, id).name));
    for (const ValueId id : graph.outputs) output_names_.push_back(interned(value_at(graph, id).name));
    for (const StateBinding& binding : options_.states) kept_inputs_.insert(graph.find_value(binding.input));
  }

  std::unique_ptr<PythonSession> clone() {
    std::unique_ptr<Session> copy;
    if (const auto* cloning = dynamic_cast<const SessionCloning*>(session_.get())) {
      const nb::gil_scoped_release nogil;
      const std::scoped_lock lock(mutex_);
      copy = unwrap(cloning->clone());
    }
    return std::make_unique<PythonSession>(model_, executor_, std::string(), options_, std::move(copy));
  }

  const std::vector<nb::object>& input_names() const { return input_names_; }
  const std::vector<nb::object>& output_names() const { return output_names_; }
  std::string executor_name() const { return executor_->name(); }
  ModelHandle model() const { return {model_}; }

  nb::list run_list(nb::handle inputs, const CallOptions& options) {
    std::vector<Output> outputs = run(values_in_order(inputs), options);
    nb::list result;
    for (Output& output : outputs) result.append(to_python(output, options));
    return result;
  }

  // From and to dictionaries by name. Without a kind, results are arrays as the inputs are.
  nb::dict run_dict(nb::handle inputs, std::optional<ArrayKind> kind, CallOptions options) {
    std::vector<Value> values = PyDict_Check(inputs.ptr()) != 0 ? values_by_name(inputs) : values_in_order(inputs);
    options.kind = kind.has_value() ? *kind : kind_of(inputs);
    std::vector<Output> outputs = run(std::move(values), options);
    nb::dict result;
    for (size_t index = 0; index < outputs.size(); ++index) {
      if (outputs[index].value.is_absent() && !kept_inputs_.empty()) continue;  // it stays in the session
      if (PyDict_SetItem(result.ptr(), output_names_[index].ptr(), to_python(outputs[index], options).ptr()) != 0)
        throw nb::python_error();
    }
    return result;
  }

  void reset_states(int64_t batch, int64_t capacity) {
    const nb::gil_scoped_release nogil;
    const std::scoped_lock lock(mutex_);
    unwrap(states().reset_states(batch, capacity));
  }

  void reorder_states(const std::vector<int32_t>& rows) {
    const nb::gil_scoped_release nogil;
    const std::scoped_lock lock(mutex_);
    unwrap(states().reorder_states(rows));
  }

  void set_state(nb::handle which, nb::handle object) {
    const size_t index = state_index(which);
    const ValueId input = model_->graph.find_value(options_.states[index].input);
    const ValueDef& definition = value_at(model_->graph, input);
    const Value value = value_from(object, definition.type, fmt::format("state '{}'", definition.name));
    const nb::gil_scoped_release nogil;
    const std::scoped_lock lock(mutex_);
    unwrap(states().set_state(index, value));
  }

  nb::object state(nb::handle which, const std::string& kind) {
    const size_t index = state_index(which);
    Value value;
    {
      const nb::gil_scoped_release nogil;
      const std::scoped_lock lock(mutex_);
      value = unwrap(states().state(index));
    }
    return value_to_python(value, array_kind_of(kind), true);
  }

  nb::dict statistics() {
    SessionStatistics found;
    {
      const nb::gil_scoped_release nogil;
      const std::scoped_lock lock(mutex_);
      found = session_->statistics();
    }
    nb::dict result;
    result["peak_bytes"] = found.peak_bytes;
    result["weight_bytes"] = found.weight_bytes;
    result["arena_bytes"] = found.arena_bytes;
    result["plan_count"] = found.plan_count;
    result["fallback_nodes"] = found.fallback_nodes;
    return result;
  }

 private:
  SessionStates& states() const {
    auto* kept = options_.states.empty() ? nullptr : dynamic_cast<SessionStates*>(session_.get());
    if (kept == nullptr)
      raise(usage_error("the session keeps no states; Session(..., states=[(input, output)]) makes one that does"));
    return *kept;
  }

  // A position, or the name of the input or output.
  size_t state_index(nb::handle which) const {
    static_cast<void>(states());
    std::string name;
    if (!nb::try_cast(which, name)) {
      size_t index = 0;
      if (nb::try_cast(which, index) && index < options_.states.size()) return index;
      raise(usage_error(fmt::format("state {} is not there; it must be 0 to {}, or the name of its input",
                                    nb::repr(which).c_str(), options_.states.size() - 1)));
    }
    for (size_t index = 0; index < options_.states.size(); ++index) {
      if (options_.states[index].input == name || options_.states[index].output == name) return index;
    }
    raise(usage_error(fmt::format("'{}' is no state of the session; states are those that it was made with", name)));
  }

  static nb::object interned(const std::string& name) {
    PyObject* text = nb::cast(name).release().ptr();
    PyUnicode_InternInPlace(&text);
    return nb::steal(text);
  }

  const TypeInfo& input_type(size_t index) const { return value_at(model_->graph, model_->graph.inputs[index]).type; }
  std::string input_name(size_t index) const { return nb::cast<std::string>(input_names_[index]); }

  Value input(size_t index, nb::handle object) const {
    Value value = input_type(index).kind == TypeInfo::Kind::tensor && is_array(object)
                      ? Value(tensor_from(object).tensor)
                      : value_from(object, input_type(index), fmt::format("input '{}'", input_name(index)));
    if (!takes_device_memory_ && !is_on_host(value))
      raise(usage_error(fmt::format("input '{}' is on CUDA; executor '{}' reads memory of the host: x.cpu() copies it",
                                    input_name(index), executor_->name())));
    return value;
  }

  std::string known_names() const {
    std::string names;
    for (const nb::object& name : input_names_)
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", nb::cast<std::string>(name));
    return names.empty() ? "none" : names;
  }

  std::vector<Value> values_in_order(nb::handle inputs) const {
    if (PyUnicode_Check(inputs.ptr()) != 0 || PySequence_Check(inputs.ptr()) == 0 || is_array(inputs))
      raise(
          usage_error(fmt::format("inputs are a {}; they must be a mapping by name, or a list or tuple in the order "
                                  "of the model's inputs: {}",
                                  nb::type_name(inputs.type()).c_str(), known_names())));
    const size_t count = nb::len(inputs);
    if (count > input_names_.size())
      raise(usage_error(
          fmt::format("{} inputs are given; the model has {}: {}", count, input_names_.size(), known_names())));
    std::vector<Value> values(input_names_.size());
    for (size_t index = 0; index < count; ++index) values[index] = input(index, nb::object(inputs[index]));
    for (size_t index = count; index < values.size(); ++index) need_default(index);
    return values;
  }

  // An initializer of that name stands in for an input that is not given.
  void need_default(size_t index) const {
    const ValueDef& definition = value_at(model_->graph, model_->graph.inputs[index]);
    if (definition.initializer_index >= 0 || definition.type.kind == TypeInfo::Kind::optional) return;
    if (kept_inputs_.contains(model_->graph.inputs[index])) return;
    raise(usage_error(fmt::format("input '{}' is missing; it must be {} (inputs: {})", definition.name,
                                  to_string(definition.type), known_names())));
  }

  std::vector<Value> values_by_name(nb::handle inputs) const {
    std::vector<Value> values(input_names_.size());
    size_t found = 0;
    for (size_t index = 0; index < input_names_.size(); ++index) {
      PyObject* given = PyDict_GetItemWithError(inputs.ptr(), input_names_[index].ptr());
      if (given != nullptr) {
        const nb::object held = nb::borrow(given);
        values[index] = input(index, held);
        ++found;
      } else if (PyErr_Occurred() != nullptr) {
        throw nb::python_error();
      } else {
        need_default(index);
        if (input_type(index).kind == TypeInfo::Kind::optional)
          values[index] = value_from(nb::none(), input_type(index), "");
      }
    }
    if (found != static_cast<size_t>(PyDict_Size(inputs.ptr()))) refuse_unknown(inputs);
    return values;
  }

  void refuse_unknown(nb::handle inputs) const {
    for (nb::handle key : nb::borrow<nb::dict>(inputs).keys()) {
      const bool is_known = std::ranges::any_of(input_names_, [&](const nb::object& name) { return name.equal(key); });
      if (!is_known)
        raise(usage_error(fmt::format("the model has no input {} (inputs: {})", nb::repr(key).c_str(), known_names())));
    }
  }

  static ArrayKind kind_of_value(nb::handle object) {
    if (is_numpy_array(object)) return ArrayKind::numpy;
    if (is_torch_tensor(object)) return ArrayKind::torch;
    if (nb::isinstance<TensorHandle>(object)) return ArrayKind::tensor;
    return ArrayKind::numpy;
  }

  // As the first of them that says something: torch before Tensor before numpy.
  static ArrayKind kind_of(nb::handle inputs) {
    ArrayKind kind = ArrayKind::numpy;
    const nb::object values =
        PyDict_Check(inputs.ptr()) != 0 ? nb::object(nb::borrow<nb::dict>(inputs).values()) : nb::borrow(inputs);
    for (nb::handle value : values) {
      const ArrayKind own = kind_of_value(value);
      if (own == ArrayKind::torch) return own;
      if (own == ArrayKind::tensor) kind = own;
    }
    return kind;
  }

  struct Output {
    Value value;
    bool is_owned = true;  // by nobody else
  };

  // Ends while the inputs are still there: an output that shares memory with one has two owners.
  std::vector<Output> run(std::vector<Value> inputs, const CallOptions& options) {
    const nb::gil_scoped_release nogil;
    const std::scoped_lock lock(mutex_);
    std::vector<Value> values = unwrap(run_watched(inputs, options));
    if (!options.alias_outputs) unwrap(separate_outputs(values));
    std::vector<Output> outputs(values.size());
    for (size_t index = 0; index < values.size(); ++index) outputs[index].is_owned = owns_memory(values[index]);
    for (size_t index = 0; index < values.size(); ++index) outputs[index].value = std::move(values[index]);
    return outputs;
  }

  Result<std::vector<Value>> run_watched(const std::vector<Value>& inputs, const CallOptions& options) {
    if (options.observer.is_none()) return session_->run(inputs, unwatched_, options.call);
    observe_with(options.observer);
    auto outputs = session_->run(inputs, *watching_, options.call);
    const nb::gil_scoped_acquire gil;
    auto failure = watching_->take_failure();
    if (!failure.has_value()) return outputs;
    watching_.reset();  // its answers were not all given
    throw nb::python_error(std::move(*failure));
  }

  // An object that observed before is not asked again which values it wants; nothing keeps it alive between runs.
  void observe_with(nb::handle object) {
    const nb::gil_scoped_acquire gil;
    const bool is_known = watching_ != nullptr && watched_by_.is_valid() && watched_by_().is(object);
    if (!is_known) {
      watching_ = std::make_unique<PythonObserver>();
      PyObject* reference = PyWeakref_NewRef(object.ptr(), nullptr);
      if (reference == nullptr) PyErr_Clear();  // an object that knows no weak references is asked each time
      watched_by_ = nb::steal(reference);
    }
    watching_->watch_with(object);
  }

  // Shared memory is read-only but for torch, which has none that is: who asked for sharing gets it.
  static nb::object to_python(Output& output, const CallOptions& options) {
    const bool writable = output.is_owned || options.kind == ArrayKind::torch;
    nb::object object = value_to_python(output.value, options.kind, writable);
    output.value = Value();
    return object;
  }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<Executor> executor_;
  RunOptions options_;
  std::unique_ptr<Session> session_;
  std::vector<nb::object> input_names_, output_names_;
  std::set<ValueId> kept_inputs_;
  bool takes_device_memory_ = false;
  std::mutex mutex_;
  NullObserver unwatched_;
  std::unique_ptr<PythonObserver> watching_;
  nb::object watched_by_;  // a weak reference
};

nb::list names_list(const std::vector<nb::object>& names) {
  nb::list list;
  for (const nb::object& name : names) list.append(name);
  return list;
}

nb::list run_list(PythonSession& self, nb::handle inputs, const std::string& kind, nb::handle observer,
                  const std::string& graph, int64_t step, bool alias_outputs) {
  return self.run_list(inputs, {array_kind_of(kind), observer, {graph, step}, alias_outputs});
}

nb::dict run_dict(PythonSession& self, nb::handle inputs, nb::handle kind, nb::handle observer, bool alias_outputs) {
  std::optional<ArrayKind> wanted;
  if (!kind.is_none()) wanted = array_kind_of(nb::cast<std::string>(kind));
  return self.run_dict(inputs, wanted, {ArrayKind::numpy, observer, {}, alias_outputs});
}

}  // namespace

void bind_session(nb::module_& module) {
  bind_value_infos(module);
  nb::class_<PythonSession>(module, "Session", nb::is_weak_referenceable(), "A model made ready on an executor.")
      .def(nb::init<const ModelHandle&, const std::string&, const nb::dict&>(), nb::arg("model"),
           nb::arg("executor") = "cpu", nb::arg("options") = nb::dict(),
           nb::sig(
               "def __init__(self, model: Model, executor: str = 'cpu', options: dict[str, typing.Any] = {}) -> None"),
           "Options: accumulate, fallback, keep_casts, memory_limit, observe_all, rewrite, seed, states, tf32, "
           "time_limit.")
      .def("run", run_list, nb::arg("inputs"), nb::arg("kind") = "numpy", nb::arg("observer") = nb::none(),
           nb::arg("graph") = "", nb::arg("step") = -1, nb::arg("alias_outputs") = false,
           nb::sig("def run(self, inputs: collections.abc.Sequence[typing.Any], kind: str = 'numpy', observer: "
                   "typing.Any = None, "
                   "graph: str = '', step: int = -1, alias_outputs: bool = False) -> list[typing.Any]"),
           "Runs the model on inputs in order and returns its outputs in order.")
      .def("run_named", run_dict, nb::arg("inputs"), nb::arg("kind") = nb::none(), nb::arg("observer") = nb::none(),
           nb::arg("alias_outputs") = false,
           nb::sig("def run_named(self, inputs: dict[str, typing.Any] | collections.abc.Sequence[typing.Any], "
                   "kind: str | None = None, observer: typing.Any = None, alias_outputs: bool = False) -> "
                   "dict[str, typing.Any]"),
           "The same with outputs by name; without a kind, they are arrays as the inputs are.")
      .def("clone", &PythonSession::clone, "Returns a session of the same model and options with memory of its own.")
      .def("reset_states", &PythonSession::reset_states, nb::arg("batch"), nb::arg("capacity") = 256,
           "Empties every state for so many rows, with memory for so many positions.")
      .def("reorder_states", &PythonSession::reorder_states, nb::arg("rows"),
           nb::sig("def reorder_states(self, rows: collections.abc.Sequence[int]) -> None"),
           "Row i of every state becomes its old row rows[i].")
      .def("set_state", &PythonSession::set_state, nb::arg("which"), nb::arg("value"),
           nb::sig("def set_state(self, which: int | str, value: typing.Any) -> None"), "Replaces a state by a copy.")
      .def("state", &PythonSession::state, nb::arg("which"), nb::arg("kind") = "numpy",
           nb::sig("def state(self, which: int | str, kind: str = 'numpy') -> typing.Any"),
           "Returns a copy of a state.")
      .def("statistics", &PythonSession::statistics, nb::sig("def statistics(self) -> dict[str, typing.Any]"),
           "Returns peak_bytes, weight_bytes, arena_bytes, plan_count and fallback_nodes.")
      .def_prop_ro("model", &PythonSession::model)
      .def_prop_ro("executor", &PythonSession::executor_name)
      .def_prop_ro(
          "input_names", [](const PythonSession& self) { return names_list(self.input_names()); },
          nb::sig("def input_names(self) -> list[str]"))
      .def_prop_ro(
          "output_names", [](const PythonSession& self) { return names_list(self.output_names()); },
          nb::sig("def output_names(self) -> list[str]"));
}

}  // namespace parallax::python
