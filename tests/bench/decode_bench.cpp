// SPDX-License-Identifier: Apache-2.0
// One token after a long context: a session that keeps its caches against one whose caches go in and out of each run.
// decode_bench MODEL.onnx [CONTEXT]: a decoder with inputs past_key_values.* and outputs present.*. Both take the same
// tokens by turns; prints lower quartiles, and their ratio. The figures are times of this machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include <fmt/format.h>

#include "inspector/exec/session_states.h"
#include "inspector/model/io/import.h"
#include "runtime/plan/runtime.h"

namespace parallax {
namespace {

constexpr int kWarmSteps = 6, kSteps = 100;

double elapsed_ms(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// A quarter of the times are shorter: what else runs on the machine only makes some longer.
double lower_quartile(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 4];
}

template <class T>
T taken(Result<T> result) {
  if (result.ok()) return result.take();
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

void check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  std::exit(1);
}

class Decoder {
 public:
  Decoder(const std::string& path, int64_t context) : context_(context), model_(taken(import_model(path))) {
    const Graph& graph = model_->graph;
    for (size_t index = 0; index < graph.inputs.size(); ++index) {
      const std::string& name = value_at(graph, graph.inputs[index]).name;
      if (!name.starts_with("past_key_values.")) continue;
      const std::string output = "present." + name.substr(name.find('.') + 1);
      options_.states.push_back({name, output, 2});
      cached_inputs_.push_back(index);
      cached_outputs_.push_back(
          static_cast<size_t>(std::ranges::find(graph.outputs, graph.find_value(output)) - graph.outputs.begin()));
    }
    keeping_ = taken(make_cpu_executor()->prepare(model_, options_));
    copying_ = taken(make_cpu_executor()->prepare(model_, {}));
  }

  void begin() {
    auto& states = dynamic_cast<SessionStates&>(*keeping_);
    check(states.reset_states(1, context_ + kWarmSteps + kSteps));
    caches_.clear();
    for (size_t index = 0; index < cached_inputs_.size(); ++index) {
      caches_.push_back(cache(index));
      check(states.set_state(index, caches_.back()));
    }
    length_ = context_;
  }

  // The times of both for the same token, in which nothing but the runs is counted.
  std::pair<double, double> step() {
    const std::vector<Value> given = inputs();
    std::vector<Value> with_caches = given;
    for (size_t index = 0; index < caches_.size(); ++index) with_caches[cached_inputs_[index]] = caches_[index];
    caches_.clear();
    std::vector<Value> kept, copied;
    NullObserver nobody;
    const auto keep = [&] { kept = taken(keeping_->run(given, nobody)); };
    const auto copy = [&] { copied = taken(copying_->run(with_caches, nobody)); };
    std::pair<double, double> times;
    const bool is_kept_first = length_ % 2 == 0;
    if (is_kept_first) times.first = elapsed_ms(keep);
    times.second = elapsed_ms(copy);
    if (!is_kept_first) times.first = elapsed_ms(keep);
    for (size_t output : cached_outputs_) caches_.push_back(copied[output]);
    is_equal_ = is_equal_ && std::ranges::equal(kept[0].tensor().view().bytes(), copied[0].tensor().view().bytes());
    ++length_;
    return times;
  }
  bool is_equal() const { return is_equal_; }

 private:
  Value cache(size_t index) const {
    const ValueDef& input = value_at(model_->graph, model_->graph.inputs[cached_inputs_[index]]);
    const std::vector<Dim>& dims = *input.type.dims;
    Tensor made = taken(Tensor::allocate(DType::float32, Shape{1, dims[1].value, context_, dims[3].value}));
    uint32_t state = static_cast<uint32_t>(index) + 12345;
    for (float& element : made.mutable_as<float>()) {
      state = state * 1664525U + 1013904223U;
      element = static_cast<float>(state >> 8) / 16777216.0F - 0.5F;
    }
    return made;
  }

  std::vector<Value> inputs() const {
    std::vector<Value> given;
    for (ValueId id : model_->graph.inputs) {
      const std::string& name = value_at(model_->graph, id).name;
      if (name == "attention_mask") {
        const std::vector<int64_t> ones(static_cast<size_t>(length_) + 1, 1);
        given.emplace_back(Tensor::from<int64_t>(Shape{1, length_ + 1}, ones));
      } else if (name == "position_ids" || name == "input_ids") {
        const int64_t number = name == "input_ids" ? 7 + length_ % 50 : length_;
        given.emplace_back(Tensor::from<int64_t>(Shape{1, 1}, std::span(&number, 1)));
      } else {
        given.emplace_back();
      }
    }
    return given;
  }

  int64_t context_;
  std::shared_ptr<const Model> model_;
  RunOptions options_;
  std::vector<size_t> cached_inputs_, cached_outputs_;
  std::unique_ptr<Session> keeping_, copying_;
  std::vector<Value> caches_;
  int64_t length_ = 0;
  bool is_equal_ = true;
};

int run(const std::string& path, int64_t context) {
  Decoder decoder(path, context);
  decoder.begin();
  for (int step = 0; step < kWarmSteps; ++step) decoder.step();
  std::vector<double> kept, copied;
  for (int step = 0; step < kSteps; ++step) {
    const auto [in_place, copying] = decoder.step();
    kept.push_back(in_place);
    copied.push_back(copying);
  }
  fmt::print("context {}: in place {:.2f} ms, copied {:.2f} ms a token, ratio {:.2f}, logits {}\n", context,
             lower_quartile(kept), lower_quartile(copied), lower_quartile(copied) / lower_quartile(kept),
             decoder.is_equal() ? "equal" : "DIFFER");
  return decoder.is_equal() ? 0 : 1;
}

}  // namespace
}  // namespace parallax

int main(int count, char** arguments) {
  if (count < 2) return std::fprintf(stderr, "usage: decode_bench MODEL.onnx [CONTEXT]\n"), 2;
  return parallax::run(arguments[1], count > 2 ? std::atoll(arguments[2]) : 1024);
}
