// SPDX-License-Identifier: Apache-2.0
// The cost of capturing. First as a rate: a dump writer shown tensors of 0.5 to 16 MB against memcpy of such tensors
// into touched memory. Then as a part of a run: a transformer on the executor "cpu" with every value captured, up to
// and with the end of the dump, or with statistics alone, against the same run without. Everything is captured twice:
// into memory that the dump touches beforehand, as into a ring, and into memory that the dump has to ask for while the
// model runs, which Linux clears first. Every figure is of one process; compared runs alternate. Usage: capture_bench
// [FOLDER for the dumps, /dev/shm] [ROUNDS, 21] [rate | run HIDDEN THREADS | model FILE THREADS] With `model`: any
// model, rewritten as by default, on generated inputs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <sys/mman.h>

#include "inspector/base/thread_pool.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/inputs/inputs.h"

using namespace parallax;

namespace {

// Time on the clock, and of all threads on all cores: on a busy machine the second is the steadier one.
struct Cost {
  double wall = 0;
  double cpu = 0;
};

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Cost cost_of(const std::function<void()>& work) {
  const double cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {wall, cpu_seconds() - cpu};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double median_of(const std::vector<Cost>& costs, double Cost::*member) {
  std::vector<double> values;
  for (const Cost& cost : costs) values.push_back(cost.*member);
  return median(std::move(values));
}

double least_of(const std::vector<Cost>& costs) { return std::ranges::min_element(costs, {}, &Cost::wall)->wall; }

// Ends the program with the error: a benchmark has nobody to hand it to.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return result.take();
}

Tensor normal_floats(const Shape& shape, uint64_t seed, float scale = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, scale);
  Tensor tensor = must(Tensor::allocate(DType::float32, shape));
  for (float& value : tensor.mutable_as<float>()) value = normal(random);
  return tensor;
}

// A virtual machine may have given free memory back to its host, and getting it again costs more than all that is
// measured here: this asks for it beforehand.
void warm_free_memory(size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  ::madvise(memory, bytes, MADV_POPULATE_WRITE);
  ::munmap(memory, bytes);
}

// ---- Rate ----------------------------------------------------------------------------------------------------------

constexpr size_t kSizes = 6;          // 0.5, 1, 2, 4, 8, 16 MB
constexpr size_t kTensorsOfSize = 4;  // 126 MB in all: more than caches hold

struct Produced {
  ValueInfo value_info;
  std::string name;
  Value value;
};

std::vector<Produced> make_values() {
  std::vector<Produced> values(kSizes * kTensorsOfSize);
  for (size_t index = 0; index < values.size(); ++index) {
    Produced& produced = values[index];
    produced.name = "value_" + std::to_string(index);
    produced.value = Value(normal_floats({int64_t{1} << (17 + index % kSizes)}, index));
    produced.value_info.id = static_cast<int32_t>(index);
    produced.value_info.name = produced.name;
    produced.value_info.escaped_name = produced.name;
  }
  return values;
}

void measure_rate(const std::string& path, int threads, int rounds) {
  set_thread_count(threads);
  const std::vector<Produced> values = make_values();
  size_t total_bytes = 0;
  for (const Produced& produced : values) total_bytes += produced.value.tensor().size_bytes();
  std::vector<std::byte> touched(size_t{16} << 20, std::byte{1});
  std::vector<std::vector<double>> copies(kSizes);
  std::vector<std::vector<double>> captures(kSizes);
  const FrameStack frames;
  for (int round = 0; round < rounds; ++round) {
    warm_free_memory(2 * total_bytes);
    DumpWriterOptions options;
    options.ring_bytes = 2 * total_bytes;
    const auto writer = must(DumpWriter::create(path, options));
    writer->prepare(total_bytes + (size_t{8} << 20));
    must(writer->begin_run({"bench", "", {}, nullptr, ""}));
    must(writer->begin_call({}, {}));
    for (size_t index = 0; index < values.size(); ++index) {
      const Produced& captured = values[index];
      const Tensor& copied =
          values[(index + values.size() / 2) % values.size()].value.tensor();  // as large, not cached
      copies[index % kSizes].push_back(
          cost_of([&] { std::memcpy(touched.data(), copied.view().data, copied.size_bytes()); }).wall);
      captures[index % kSizes].push_back(
          cost_of([&] {
            must(writer->observe({captured.value_info, frames, captured.value, nullptr, nullptr}));
          }).wall);
    }
    must(writer->finish());
  }
  std::filesystem::remove(path);
  double copy = 0;
  double capture = 0;
  std::printf("rate, %d thread(s):", threads);
  for (size_t size = 0; size < kSizes; ++size) {
    const double of_copy = median(copies[size]);
    const double of_capture = median(captures[size]);
    std::printf("  %.1f MB %.2f", static_cast<double>(size_t{1} << size) / 2, of_copy / of_capture);
    copy += of_copy;
    capture += of_capture;
  }
  const double gigabytes = static_cast<double>(total_bytes) / kTensorsOfSize / 1e9;
  std::printf("\n  memcpy %.1f GB/s, capture %.1f GB/s: %.2f of memcpy (goal 0.7 and more)\n", gigabytes / copy,
              gigabytes / capture, copy / capture);
}

// ---- Part of a run -------------------------------------------------------------------------------------------------

// The widths of BERT-large and of Llama 3.2 1B; every tensor has 0.5 MB and more. The arithmetic of a layer for each
// byte of its values grows with `hidden`.
struct Size {
  int64_t sequence, hidden, heads;
  size_t calls;  // in a round
  int64_t inner() const { return 4 * hidden; }
};
constexpr Size kTransformers[] = {{256, 1024, 8, 3}, {256, 2048, 16, 1}};
constexpr int kLayers = 2;
// A round takes about a quarter of a second, within which the host takes no free memory back.
constexpr double kRoundSeconds = 0.25;

class Builder {
 public:
  explicit Builder(const Size& size) : size_(size) {}
  std::shared_ptr<const Model> build() {
    model_.ir_version = 10;
    model_.opset_imports = {{"", 21}};
    model_.graph.name = "transformer";
    ValueId x = value("x", DType::float32, {size_.sequence, size_.hidden});
    model_.graph.inputs = {x};
    for (int index = 0; index < kLayers; ++index) x = layer(x);
    model_.graph.outputs = {x};
    const std::string bytes = must(export_model_bytes(model_));
    return must(import_model(std::as_bytes(std::span(bytes)), "", "transformer"));
  }

 private:
  ValueId value(const std::string& name, DType dtype, const Shape& shape) {
    ValueDef& def = model_.graph.values.emplace_back();
    def.name = name;
    def.type = type_of(Value(must(Tensor::zeros(dtype, shape))));
    return static_cast<ValueId>(model_.graph.values.size()) - 1;
  }

  ValueId constant(Tensor tensor) {
    const std::string name = "w" + std::to_string(model_.graph.initializers.size());
    const ValueId id = value(name, tensor.dtype(), tensor.shape());
    StoredTensor& stored = model_.graph.initializers.emplace_back();
    stored.name = name;
    stored.tensor = std::move(tensor);
    model_.graph.initializer_values.push_back(id);
    return id;
  }
  ValueId weight(const Shape& shape) { return constant(normal_floats(shape, model_.graph.initializers.size(), 0.02F)); }

  ValueId node(const std::string& op, const std::vector<ValueId>& inputs, const Shape& shape) {
    const ValueId output = value(op + std::to_string(model_.graph.nodes.size()), DType::float32, shape);
    Node& node = model_.graph.nodes.emplace_back();
    node.op_type = op;
    node.inputs = inputs;
    node.outputs = {output};
    return output;
  }
  ValueId reshape(ValueId x, const std::vector<int64_t>& dims) {
    return node("Reshape", {x, constant(Tensor::from<int64_t>({static_cast<int64_t>(dims.size())}, dims))},
                Shape(std::span(dims)));
  }
  ValueId transpose(ValueId x, const std::vector<int64_t>& order, const Shape& shape) {
    const ValueId output = node("Transpose", {x}, shape);
    Attribute& attribute = model_.graph.nodes.back().attributes.emplace_back();
    attribute.name = "perm";
    attribute.type = AttributeType::ints;
    attribute.value = order;
    return output;
  }

  ValueId attention(ValueId x) {
    const Shape rows{size_.sequence, size_.hidden};
    const Shape scores{size_.heads, size_.sequence, size_.sequence};
    const int64_t head = size_.hidden / size_.heads;
    const auto heads = [&] {
      return reshape(node("MatMul", {x, weight({size_.hidden, size_.hidden})}, rows),
                     {size_.sequence, size_.heads, head});
    };
    const ValueId query = transpose(heads(), {1, 0, 2}, {size_.heads, size_.sequence, head});
    const ValueId key = transpose(heads(), {1, 2, 0}, {size_.heads, head, size_.sequence});
    const ValueId data = transpose(heads(), {1, 0, 2}, {size_.heads, size_.sequence, head});
    const ValueId scaled = node("Mul", {node("MatMul", {query, key}, scores), weight({})}, scores);
    const ValueId mixed =
        node("MatMul", {node("Softmax", {scaled}, scores), data}, {size_.heads, size_.sequence, head});
    const ValueId joined =
        reshape(transpose(mixed, {1, 0, 2}, {size_.sequence, size_.heads, head}), {size_.sequence, size_.hidden});
    return node("MatMul", {joined, weight({size_.hidden, size_.hidden})}, rows);
  }
  ValueId normalized(ValueId x) {
    return node("LayerNormalization", {x, weight({size_.hidden}), weight({size_.hidden})},
                {size_.sequence, size_.hidden});
  }
  ValueId layer(ValueId x) {
    const Shape rows{size_.sequence, size_.hidden};
    const Shape inner{size_.sequence, size_.inner()};
    const ValueId attended = normalized(node("Add", {x, attention(x)}, rows));
    const ValueId up = node("Gelu", {node("MatMul", {attended, weight({size_.hidden, size_.inner()})}, inner)}, inner);
    return normalized(node("Add", {attended, node("MatMul", {up, weight({size_.inner(), size_.hidden})}, rows)}, rows));
  }

  Size size_;
  Model model_;
};

// One of the ways to run that are compared: nothing captured, statistics only, everything.
struct Way {
  const char* name;
  std::optional<CaptureLevel> level;
  double goal = 0;  // of its time as a part of the plain one's
  bool is_prepared = false;
  std::vector<Cost> costs = {};
};

// How much a dump of a call takes.
class ByteCounter final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo& value_info) override {
    return value_info.role == ValueInfo::Role::initializer ? CaptureLevel::none : CaptureLevel::all;
  }
  Status observe(const Observation& observation) override {
    constexpr size_t kRecordBytes = 2048;  // and what is in the index
    bytes_ += kRecordBytes + (observation.alias_of == nullptr ? payload_bytes(observation.value) : 0);
    return {};
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

class RunBench {
 public:
  // Another input for each call: equal payloads would be stored once.
  using MakeInputs = std::function<std::vector<Value>(uint64_t seed)>;

  RunBench(std::string name, std::shared_ptr<const Model> model, bool observe_all, size_t calls, std::string path)
      : name_(std::move(name)), path_(std::move(path)), model_(std::move(model)), calls_(calls) {
    options_.observe_all = observe_all;
    executor_ = must(make_executor("cpu"));
    session_ = must(executor_->prepare(model_, options_));
  }

  void make_inputs(const MakeInputs& make) {
    inputs_ = {make(0)};
    ByteCounter counter;
    must(session_->run(inputs_[0], counter));
    NullObserver nobody;
    if (calls_ == 0) {
      const double seconds = cost_of([&] { must(session_->run(inputs_[0], nobody)); }).wall;
      calls_ = static_cast<size_t>(std::max(1.0, kRoundSeconds / seconds));
    }
    bytes_to_come_ = calls_ * counter.bytes() + (size_t{2} << 20);
    while (inputs_.size() <= calls_) inputs_.push_back(make(inputs_.size()));
  }

  void measure(int threads, int rounds) {
    set_thread_count(threads);
    Way ways[] = {{"plain", {}},
                  {"statistics", CaptureLevel::stats, 1.05},
                  {"everything, into memory touched before,", CaptureLevel::all, 1.12, true},
                  {"everything, its memory got meanwhile,", CaptureLevel::all, 1.12}};
    for (int round = 0; round < rounds; ++round) {
      for (Way& way : ways) way.costs.push_back(way.level.has_value() ? captured(way) : plain());
    }
    std::filesystem::remove(path_);
    std::printf("%s, %d thread(s): plain %.1f ms a call\n", name_.c_str(), threads,
                1e3 * median_of(ways[0].costs, &Cost::wall) / static_cast<double>(calls_));
    for (const Way& way : std::span(ways).subspan(1)) print(way, ways[0]);
  }

 private:
  void call_all(Observer& observer) {
    for (size_t call = 1; call <= calls_; ++call)
      must(session_->run(inputs_[call], observer, {"", static_cast<int64_t>(call)}));
  }

  Cost plain() {
    return cost_of([&] {
      NullObserver nobody;
      call_all(nobody);
    });
  }

  Cost captured(const Way& way) {
    DumpWriterOptions options;
    options.level = *way.level;
    if (way.is_prepared) options.ring_bytes = bytes_to_come_;
    const auto writer = must(DumpWriter::create(path_, options));
    must(writer->begin_run(describe_run(*executor_, options_, model_)));
    must(session_->run(inputs_[0], *writer, {"", 0}));  // stores the weights, once for the dump
    warm_free_memory(4 * bytes_to_come_);
    if (way.is_prepared) writer->prepare(bytes_to_come_);
    return cost_of([&] {
      call_all(*writer);
      must(writer->end_run(true));
      must(writer->finish());
    });
  }

  // The rounds' median and the least of each say the same where nothing else runs on the machine. Where memory that the
  // host of a virtual machine had reclaimed is slow to come, a round may take twice as long: the lower quartile of the
  // rounds' CPU time is mostly without that.
  static void print(const Way& way, const Way& plain) {
    std::printf(
        "  %s / plain: %.3f, of the least %.3f (goal %.2f and less); CPU time of all threads: %.3f, lower quartile "
        "%.3f\n",
        way.name, part_of(way, plain, &Cost::wall, 0.5), least_of(way.costs) / least_of(plain.costs), way.goal,
        part_of(way, plain, &Cost::cpu, 0.5), part_of(way, plain, &Cost::cpu, 0.25));
  }

  static double part_of(const Way& way, const Way& plain, double Cost::*member, double quantile) {
    std::vector<double> ratios;
    for (size_t round = 0; round < way.costs.size(); ++round)
      ratios.push_back(way.costs[round].*member / plain.costs[round].*member);
    std::ranges::sort(ratios);
    return ratios[static_cast<size_t>(quantile * static_cast<double>(ratios.size()))];
  }

  std::string name_;
  std::string path_;
  std::shared_ptr<const Model> model_;
  size_t calls_;  // in a round
  size_t bytes_to_come_ = 0;
  RunOptions options_;
  std::shared_ptr<Executor> executor_;
  std::unique_ptr<Session> session_;
  std::vector<std::vector<Value>> inputs_;
};

RunBench bench_of(const Size& size, const std::string& path) {
  RunBench bench("run, hidden " + std::to_string(size.hidden), Builder(size).build(), true, size.calls, path);
  bench.make_inputs([&](uint64_t seed) -> std::vector<Value> {
    return {Value(normal_floats({size.sequence, size.hidden}, seed))};
  });
  return bench;
}

RunBench bench_of(const std::string& file, const std::string& path) {
  const auto model = must(import_model(file));
  RunBench bench(file, model, false, 0, path);
  bench.make_inputs([&](uint64_t seed) {
    InputRequest request;
    request.seed = seed;
    return must(make_inputs(*model, request)).values;
  });
  return bench;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "/dev/shm";
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 21;
  const std::string part = argc > 3 ? argv[3] : "";
  const std::string which = argc > 4 ? argv[4] : "";
  const int only_threads = argc > 5 ? std::atoi(argv[5]) : 0;
  const std::string path = folder + "/capture_bench.plx";
  const auto measure = [&](RunBench bench) {
    for (const int threads : {1, 2}) {
      if (only_threads == 0 || only_threads == threads) bench.measure(threads, rounds);
    }
  };
  for (const int threads : {1, 2}) {
    if (part.empty() || part == "rate") measure_rate(path, threads, rounds);
  }
  if (part == "model") measure(bench_of(which, path));
  for (const Size& size : kTransformers) {
    if (part.empty() || (part == "run" && (which.empty() || which == std::to_string(size.hidden))))
      measure(bench_of(size, path));
  }
  return 0;
}
