// SPDX-License-Identifier: Apache-2.0
// Damaged files: whatever is cut off or flipped, import answers with a model or with one printable sentence that names
// the file. Seeds are fixed, so that a failure repeats.
#include <random>

#include <gtest/gtest.h>

#include "inspector/base/mapped_file.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "tests/inspector/model/model_files.h"

namespace parallax {
namespace {

// Small models of every kind: bodies, functions, sequences, sparse and packed tensors.
std::vector<std::string> originals() {
  const std::string node_tests = "/usr/share/libonnx-testdata/data/node/";
  std::vector<std::string> contents;
  for (const char* name :
       {"test_loop13_seq", "test_if_opt", "test_scan_sum", "test_sequence_map_add_2_sequences",
        "test_softmax_axis_0_expanded", "test_constant", "test_cast_STRING_to_FLOAT", "test_identity_opt"}) {
    auto file = read_file(node_tests + name + "/model.onnx");
    EXPECT_TRUE(file.ok()) << "install libonnx-testdata: " << file.error().message;
    if (file.ok()) contents.push_back(*file);
  }
  const auto with_function = model_from_text(R"(graph {
      input { name: 'x' type { tensor_type { elem_type: 1 } } } output { name: 'y' type { tensor_type { elem_type: 1 } } }
      initializer { name: 'packed' dims: 3 data_type: 22 raw_data: '\021\001' }
      sparse_initializer { values { name: 's' dims: 1 data_type: 1 float_data: 4 } indices { dims: 1 data_type: 7 int64_data: 5 } dims: 2 dims: 3 }
      node { input: 'x' output: 'y' op_type: 'F' domain: 'my' metadata_props { key: 'k' value: 'v' } } }
    opset_import { version: 20 } opset_import { domain: 'my' version: 1 }
    functions { name: 'F' domain: 'my' input: 'a' output: 'b' attribute_proto { name: 'alpha' f: 2 type: FLOAT } opset_import { version: 20 }
      node { input: 'a' output: 'b' op_type: 'Elu' attribute { name: 'alpha' ref_attr_name: 'alpha' type: FLOAT } } })");
  contents.push_back(export_model_bytes(*with_function).take());
  return contents;
}

void expect_answer(const std::string& bytes, int& refused) {
  for (const ModelChecks checks : {ModelChecks::required, ModelChecks::recorded, ModelChecks::none}) {
    ImportOptions options;
    options.checks = checks;
    const auto model = import_model(std::as_bytes(std::span(bytes)), "", "damaged.onnx", options);
    if (model.ok()) {
      EXPECT_TRUE(checks != ModelChecks::required || check_model(**model).empty());
      EXPECT_TRUE(checks != ModelChecks::recorded || check_model(**model).size() <= (*model)->problems.size());
      continue;
    }
    ++refused;
    const std::string& message = model.error().message;
    EXPECT_TRUE(message.starts_with("'damaged.onnx'")) << message;
    EXPECT_TRUE(std::ranges::all_of(message, [](char c) { return static_cast<unsigned char>(c) >= 0x20; })) << message;
    EXPECT_EQ(exit_code(model.error().code), 3) << message;
  }
}

TEST(Damage, EveryTruncationIsAnswered) {
  int refused = 0;
  for (const std::string& whole : originals()) {
    for (size_t size = 0; size < whole.size(); ++size) expect_answer(whole.substr(0, size), refused);
  }
  EXPECT_GT(refused, 1000);
}

TEST(Damage, FlippedBitsAreAnswered) {
  std::mt19937 random(20);
  int refused = 0;
  for (const std::string& whole : originals()) {
    for (int variant = 0; variant < 400; ++variant) {
      std::string bytes = whole;
      for (uint32_t flips = 1 + random() % 4; flips > 0; --flips) {
        bytes[random() % bytes.size()] ^= static_cast<char>(1u << (random() % 8));
      }
      expect_answer(bytes, refused);
    }
  }
  EXPECT_GT(refused, 500);
}

// Two models laid over each other: fields of one inside the messages of the other.
TEST(Damage, SplicedModelsAreAnswered) {
  std::mt19937 random(21);
  const auto wholes = originals();
  int refused = 0;
  for (int variant = 0; variant < 1000; ++variant) {
    const std::string& a = wholes[random() % wholes.size()];
    const std::string& b = wholes[random() % wholes.size()];
    expect_answer(a.substr(0, random() % a.size()) + b.substr(random() % b.size()), refused);
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace parallax
