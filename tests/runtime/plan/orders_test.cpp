// SPDX-License-Identifier: Apache-2.0
// Values that convolutions hand on channels last: every kind of reader, the observer and bodies see the tensor that the
// reference has, and watching changes no bit.
#include <cstring>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/tensor/channels_last.h"
#include "inspector/tensor/elements.h"
#include "reference/reference.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::orders_test {
namespace {

using model_text::model_of;
using model_text::node;
using model_text::value;
using session_values::Recorder;

std::string weight(const std::string& name, const std::vector<int>& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text = "initializer { name: \"" + name + "\" data_type: 1 ";
  int count = 1;
  for (int dim : dims) {
    text += fmt::format("dims: {} ", dim);
    count *= dim;
  }
  for (int i = 0; i < count; ++i)
    text += fmt::format("float_data: {} ", static_cast<double>(random() % 2001) / 1000.0 - 1.0);
  return text + "} ";
}

std::string ints(const std::string& name, const std::string& values) {
  return "attribute { name: \"" + name + "\" type: INTS ints: [" + values + "] } ";
}
std::string integer(const std::string& name, int value) {
  return fmt::format("attribute {{ name: \"{}\" type: INT i: {} }} ", name, value);
}

// c = conv(x) is [2,6,7,8]; what follows makes y of it.
std::shared_ptr<const Model> model_with(const std::string& rest) {
  const std::string dims = "dim { dim_value: 2 } dim { dim_value: 3 } dim { dim_value: 7 } dim { dim_value: 8 }";
  return model_of(node("Conv", {"x", "w"}, {"c"}, ints("pads", "1, 1, 1, 1")) + rest + weight("w", {6, 3, 3, 3}, 1) +
                  weight("channel", {6, 1, 1}, 2) + weight("maps", {2, 6, 1, 1}, 3) + weight("plane", {7, 8}, 4) +
                  weight("full", {2, 6, 7, 8}, 5) + weight("six", {6}, 6) + weight("one", {1}, 7) +
                  weight("w2", {5, 6, 3, 3}, 8) + weight("w3", {6, 1, 3, 3}, 9) + weight("w4", {6, 6, 1, 1}, 10) +
                  value("input", "x", 1, "shape { " + dims + " }") + value("output", "y"));
}

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.element_count()));
  load_doubles(tensor.view(), 0, values);
  return values;
}

void expect_near(const Tensor& seen, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(seen.shape(), expected.shape()) << what;
  const auto a = doubles_of(seen), b = doubles_of(expected);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4 * (1 + std::abs(b[i]))) << what << " " << i;
}

std::vector<Value> inputs() {
  std::mt19937 random(11);
  std::vector<float> values(2 * 3 * 7 * 8);
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
  return {Tensor::from<float>(Shape{2, 3, 7, 8}, values)};
}

// Takes values in any order.
class Untransposed final : public Recorder {
 public:
  bool takes_channels_last() const override { return true; }
  Status observe(const Observation& seen) override {
    if (!is_channels_last(seen.value)) return Recorder::observe(seen);
    ++permuted;
    values[seen.path()] = PX_TRY(read_row_major(seen.value.tensor()));
    return {};
  }
  int permuted = 0;
};

// An observer that takes values in any order sees the bits that others see.
void expect_same_untransposed(Session& session, const std::map<std::string, Tensor>& expected) {
  Untransposed seen;
  const auto outputs = session.run(inputs(), seen);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_GT(seen.permuted, 0);
  ASSERT_EQ(seen.values.size(), expected.size());
  for (const auto& [path, tensor] : expected) {
    ASSERT_TRUE(seen.values.contains(path)) << path;
    EXPECT_EQ(std::memcmp(seen.values[path].view().data, tensor.view().data, tensor.size_bytes()), 0) << path;
  }
}

void expect_as_reference(const std::string& rest, bool observe_all) {
  const auto model = model_with(rest);
  ASSERT_NE(model, nullptr);
  Recorder expected, seen;
  RunOptions options;
  options.observe_all = observe_all;
  const auto given = inputs();
  auto reference = make_reference_executor(ReferencePrecision::declared)->prepare(model, {}).take();
  ASSERT_TRUE(reference->run(given, expected).ok());
  const auto executor = make_cpu_executor({.poison_buffers = true});
  auto session = executor->prepare(model, options);
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto watched = (*session)->run(given, seen);
  ASSERT_TRUE(watched.ok()) << watched.error().message;
  for (const auto& [path, tensor] : seen.values) {
    const auto same = expected.values.find(path);
    if (same != expected.values.end()) expect_near(tensor, same->second, path);
  }
  expect_same_untransposed(**session, seen.values);
  NullObserver nobody;
  const auto unwatched = (*session)->run(given, nobody);
  ASSERT_TRUE(unwatched.ok());
  const Tensor& y = (*unwatched)[0].tensor();
  EXPECT_TRUE(y.device().is_host());
  EXPECT_EQ(std::memcmp(y.view().data, (*watched)[0].tensor().view().data, y.size_bytes()), 0);
}

class Readers : public testing::TestWithParam<std::string> {};

TEST_P(Readers, SeeTheTensorOfTheReference) {
  for (const bool observe_all : {false, true}) expect_as_reference(GetParam(), observe_all);
}

INSTANTIATE_TEST_SUITE_P(Elementwise, Readers,
                         testing::Values(node("Relu", {"c"}, {"r"}) + node("Neg", {"r"}, {"y"}),
                                         node("Sigmoid", {"c"}, {"y"}), node("Add", {"c", "full"}, {"y"}),
                                         node("Mul", {"maps", "c"}, {"y"}), node("Add", {"c", "channel"}, {"y"}),
                                         node("Sub", {"plane", "c"}, {"y"}), node("Mul", {"c", "c"}, {"y"}),
                                         node("Div", {"c", "one"}, {"y"}),
                                         node("Neg", {"c"}, {"n"}) + node("Max", {"c", "n", "channel"}, {"y"}),
                                         node("Sum", {"c"}, {"s"}) + node("Add", {"s", "c"}, {"y"}),
                                         node("Clip", {"c", "", "one"}, {"y"}), node("PRelu", {"c", "channel"}, {"y"}),
                                         node("Unsqueeze", {"full", "axes"}, {"u"}) + node("Add", {"u", "c"}, {"y"}) +
                                             "initializer { name: \"axes\" data_type: 7 dims: 1 int64_data: 0 } "));

INSTANTIATE_TEST_SUITE_P(
    Convolutions, Readers,
    testing::Values(node("Conv", {"c", "w2"}, {"d"}) + node("Relu", {"d"}, {"y"}),
                    node("Conv", {"c", "w3"}, {"y"}, integer("group", 6)),
                    node("Conv", {"c", "w4"}, {"d"}) + node("Add", {"d", "c"}, {"s"}) + node("Relu", {"s"}, {"y"}),
                    node("Conv", {"c", "w4"}, {"d"}) + node("Add", {"d", "full"}, {"s"}) + node("Relu", {"s"}, {"y"}),
                    node("Conv", {"c", "w4"}, {"d"}) + node("HardSwish", {"d"}, {"y"}),
                    node("GlobalAveragePool", {"c"}, {"p"}) + node("Conv", {"p", "w4"}, {"s"}) +
                        node("HardSigmoid", {"s"}, {"h"}) + node("Mul", {"c", "h"}, {"m"}) +
                        node("Conv", {"m", "w2"}, {"y"}),
                    node("ConvTranspose", {"c", "w4"}, {"y"}),
                    node("Reshape", {"c", "to"}, {"c7"}) + node("Conv", {"full", "c7"}, {"y"}) +
                        "initializer { name: \"to\" data_type: 7 dims: 4 int64_data: [16, 6, 7, 1] } "));

INSTANTIATE_TEST_SUITE_P(
    Pools, Readers,
    testing::Values(node("MaxPool", {"c"}, {"y"},
                         ints("kernel_shape", "3, 2") + ints("strides", "2, 2") + ints("pads", "1, 0, 1, 1")),
                    node("MaxPool", {"c"}, {"y", "indices"}, ints("kernel_shape", "3, 3")) +
                        "output { name: \"indices\" type { tensor_type { elem_type: 7 } } } ",
                    node("MaxPool", {"c"}, {"y"},
                         ints("kernel_shape", "2, 2") + ints("dilations", "2, 3") + integer("ceil_mode", 1)),
                    node("AveragePool", {"c"}, {"y"}, ints("kernel_shape", "3, 3") + ints("pads", "1, 1, 1, 1")),
                    node("AveragePool", {"c"}, {"y"},
                         ints("kernel_shape", "3, 3") + ints("pads", "1, 1, 1, 1") + integer("count_include_pad", 1)),
                    node("AveragePool", {"c"}, {"y"}, ints("kernel_shape", "7, 8")),
                    node("GlobalAveragePool", {"c"}, {"y"}), node("GlobalMaxPool", {"c"}, {"y"}),
                    node("GlobalLpPool", {"c"}, {"y"})));

INSTANTIATE_TEST_SUITE_P(
    RowMajorOnly, Readers,
    testing::Values(node("Softmax", {"c"}, {"y"}, integer("axis", 1)), node("Flatten", {"c"}, {"y"}),
                    node("Concat", {"c", "full"}, {"y"}, integer("axis", 1)),
                    node("Transpose", {"c"}, {"y"}, ints("perm", "1, 0, 3, 2")),
                    node("ReduceMean", {"c"}, {"y"}, ints("axes", "1")),
                    node("BatchNormalization", {"c", "six", "six", "six", "one6"}, {"y"}) +
                        "initializer { name: \"one6\" data_type: 1 dims: 6 float_data: [1, 2, 1, 3, 1, 1] } ",
                    node("Identity", {"c"}, {"i"}) + node("Relu", {"i"}, {"y"}),
                    node("IsNaN", {"c"}, {"n"}) + node("Where", {"n", "full", "c"}, {"y"}),
                    node("Resize", {"c", "", "scales"}, {"y"}) +
                        "initializer { name: \"scales\" data_type: 1 dims: 4 float_data: [1, 1, 2, 2] } "));

std::string sizes(const std::string& name, const std::vector<int>& values) {
  std::string text = "initializer { name: \"" + name + fmt::format("\" data_type: 7 dims: {} ", values.size());
  for (int each : values) text += fmt::format("int64_data: {} ", each);
  return text + "} ";
}
std::string floats(const std::string& name, const std::string& values, int count) {
  return fmt::format("initializer {{ name: \"{}\" data_type: 1 dims: {} float_data: [{}] }} ", name, count, values);
}
std::string text(const std::string& name, const std::string& value) {
  return "attribute { name: \"" + name + "\" type: STRING s: \"" + value + "\" } ";
}
std::string shuffle(const std::string& x, const std::string& y, int groups, int channels) {
  return node("Reshape", {x, y + "_split"}, {y + "_a"}) +
         node("Transpose", {y + "_a"}, {y + "_b"}, ints("perm", "0, 2, 1, 3, 4")) +
         node("Reshape", {y + "_b", y + "_whole"}, {y}) + sizes(y + "_split", {2, groups, channels / groups, 7, 8}) +
         sizes(y + "_whole", {2, channels, 7, 8});
}

// d has its channels last, too.
const std::string kSecond = node("Relu", {"c"}, {"d"});

INSTANTIATE_TEST_SUITE_P(
    Parts, Readers,
    testing::Values(kSecond + node("Concat", {"c", "d"}, {"y"}, integer("axis", 1)),
                    kSecond + node("Concat", {"c", "d", "full"}, {"e"}, integer("axis", 1)) + node("Neg", {"e"}, {"y"}),
                    kSecond + node("Concat", {"c", "d"}, {"y"}, integer("axis", 0)),
                    kSecond + node("Concat", {"c", "d"}, {"y"}, integer("axis", 2)),
                    kSecond + node("Concat", {"c", "d"}, {"y"}, integer("axis", -1)),
                    node("Split", {"c", "parts"}, {"a", "b"}, integer("axis", 1)) + node("Neg", {"b"}, {"n"}) +
                        node("Concat", {"n", "a"}, {"y"}, integer("axis", 1)) + sizes("parts", {2, 4}),
                    node("Split", {"c", "parts"}, {"a", "b"}, integer("axis", 3)) +
                        node("Concat", {"b", "a"}, {"y"}, integer("axis", 3)) + sizes("parts", {5, 3})));

INSTANTIATE_TEST_SUITE_P(
    Shuffles, Readers,
    testing::Values(shuffle("c", "y", 2, 6), shuffle("c", "y", 3, 6),
                    kSecond + node("Concat", {"c", "d"}, {"e"}, integer("axis", 1)) + shuffle("e", "y", 2, 12),
                    kSecond + node("Concat", {"c", "d"}, {"e"}, integer("axis", 1)) + shuffle("e", "f", 2, 12) +
                        node("Split", {"f", "parts"}, {"a", "b"}, integer("axis", 1)) + node("Sub", {"a", "b"}, {"y"}) +
                        sizes("parts", {6, 6}),
                    node("Concat", {"full", "full"}, {"e"}, integer("axis", 1)) + shuffle("e", "f", 2, 12) +
                        node("Split", {"f", "parts"}, {"a", "b"}, integer("axis", 1)) + node("Sub", {"a", "b"}, {"s"}) +
                        node("Add", {"s", "c"}, {"y"}) + sizes("parts", {6, 6})));

INSTANTIATE_TEST_SUITE_P(WholePlanes, Readers,
                         testing::Values(node("ReduceMean", {"c"}, {"y"}, ints("axes", "2, 3")),
                                         node("ReduceMean", {"c"}, {"y"},
                                              ints("axes", "-1, -2") + integer("keepdims", 0)),
                                         node("BatchNormalization", {"c", "six", "channel6", "six", "one6"}, {"n"}) +
                                             node("Relu", {"n"}, {"y"}) + weight("channel6", {6}, 12) +
                                             floats("one6", "1, 2, 1, 3, 1, 1", 6),
                                         node("Softmax", {"c"}, {"s"}, integer("axis", 3)) +
                                             node("BatchNormalization", {"s", "six", "six", "six", "one6"}, {"n"}) +
                                             node("LeakyRelu", {"n"}, {"y"}) + floats("one6", "1, 2, 1, 3, 1, 1", 6)));

INSTANTIATE_TEST_SUITE_P(
    Resized, Readers,
    testing::Values(
        node("Resize", {"c", "", "scales"}, {"y"}, text("mode", "linear")) + floats("scales", "1, 1, 2.5, 1.75", 4),
        node("Resize", {"c", "", "", "to"}, {"y"}, text("mode", "cubic")) + sizes("to", {2, 6, 5, 11}),
        node("Resize", {"c", "", "scales"}, {"y"}, text("mode", "linear")) + floats("scales", "1, 2, 1, 2", 4),
        node("Resize", {"c", "", "", "to"}, {"y"}, text("mode", "nearest")) + sizes("to", {2, 6, 5, 17})));

INSTANTIATE_TEST_SUITE_P(Groups, Readers,
                         testing::Values(node("Concat", {"c", "c"}, {"d"}, integer("axis", 1)) +
                                         node("Conv", {"d", "w5"}, {"e"},
                                              integer("group", 3) + ints("pads", "1, 1, 1, 1")) +
                                         node("Relu", {"e"}, {"y"}) + weight("w5", {18, 4, 3, 3}, 13)));

const char* const kThen =
    "attribute { name: \"then_branch\" type: GRAPH g { name: \"t\" node { op_type: \"Relu\" name: \"tr\" input: \"c\" "
    "output: \"t\" } output { name: \"t\" type { tensor_type { elem_type: 1 } } } } } ";
const char* const kElse =
    "attribute { name: \"else_branch\" type: GRAPH g { name: \"e\" node { op_type: \"Conv\" name: \"ec\" input: \"c\" "
    "input: \"w4\" output: \"e\" } output { name: \"e\" type { tensor_type { elem_type: 1 } } } } } ";

std::string branch(bool taken) {
  return node("If", {"cond"}, {"b"}, std::string(kThen) + kElse) + node("Neg", {"b"}, {"y"}) +
         fmt::format("initializer {{ name: \"cond\" data_type: 9 int32_data: {} }} ", taken ? 1 : 0);
}
std::string repeated() {
  return node("Loop", {"n", "", "c"}, {"last", "all"},
              "attribute { name: \"body\" type: GRAPH g { name: \"b\" "
              "node { op_type: \"Conv\" name: \"bc\" input: \"v\" input: \"w4\" output: \"t\" } "
              "node { op_type: \"Identity\" name: \"bi\" input: \"go\" output: \"go2\" } "
              "node { op_type: \"Identity\" name: \"bt\" input: \"t\" output: \"t2\" } "
              "input { name: \"i\" type { tensor_type { elem_type: 7 } } } "
              "input { name: \"go\" type { tensor_type { elem_type: 9 } } } "
              "input { name: \"v\" type { tensor_type { elem_type: 1 } } } "
              "output { name: \"go2\" type { tensor_type { elem_type: 9 } } } "
              "output { name: \"t\" type { tensor_type { elem_type: 1 } } } "
              "output { name: \"t2\" type { tensor_type { elem_type: 1 } } } } } ") +
         node("Relu", {"all"}, {"y"}) + "initializer { name: \"n\" data_type: 7 int64_data: 2 } ";
}

INSTANTIATE_TEST_SUITE_P(Bodies, Readers, testing::Values(branch(true), branch(false), repeated()));

}  // namespace
}  // namespace parallax::orders_test
