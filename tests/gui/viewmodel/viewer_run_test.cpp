// SPDX-License-Identifier: Apache-2.0
// Runs made from the viewer: what they leave to look at, how they are called, what is said when they cannot be made.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gui/viewmodel/viewer.h"
#include "inspector/base/mapped_file.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/executors/make_executor.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax {
namespace {

std::string model_file(const std::string& name, const std::string& body) {
  const std::string path = view_test::scratch(name);
  const std::string text = "ir_version: 8\nopset_import { version: 17 }\ngraph {\n  name: \"small\"\n" + body + "}\n";
  EXPECT_TRUE(write_file(path, text).ok());
  return path;
}

RunForm form_of(const std::string& model, const std::string& against = "") {
  RunForm form;
  form.model = model;
  form.against = against;
  return form;
}

void run_to_end(Viewer& viewer, const RunForm& form) {
  const Status begun = viewer.run(form);
  EXPECT_TRUE(begun.ok()) << begun.error().message;
  viewer.wait_idle();
}

std::string all_messages(const Viewer& viewer) {
  std::string text;
  for (const std::string& message : viewer.messages) text += message + "\n";
  return text;
}

// A copy of the sample's data set in which the last element of the output is another one.
std::string unmet_data_set() {
  const std::string folder = view_test::scratch("unmet_data_set");
  std::filesystem::create_directories(folder);
  for (const std::string name : {"input_0.pb", "input_1.pb", "output_0.pb"}) {
    std::string bytes = *read_file(view_test::sample("llama_layer/test_data_set_0/") + name);
    if (name == "output_0.pb") bytes.back() = '\x41';
    EXPECT_TRUE(write_file(folder + "/" + name, bytes).ok());
  }
  return folder;
}

TEST(ViewerRun, AnOutputThatIsNotAsExpectedIsAnAlert) {
  Viewer viewer(make_executor);
  RunForm form = form_of(view_test::sample("llama_layer/model.onnx"));
  form.inputs = unmet_data_set();
  run_to_end(viewer, form);
  ASSERT_NE(viewer.document(), nullptr);
  const Comparison& comparison = *viewer.document()->comparison;
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  EXPECT_EQ(comparison.summary.diverged, 0);
  ASSERT_EQ(viewer.alerts().size(), 2U);  // one for each side
  EXPECT_EQ(viewer.alerts()[0].kind, Alert::Kind::expected);
  EXPECT_NE(viewer.alerts()[0].text.find("of A (reference) is not as expected"), std::string::npos);
  EXPECT_NE(viewer.alerts()[1].text.find("of B (cpu) is not as expected"), std::string::npos);
  EXPECT_FALSE(viewer.alerts()[1].severity_text.empty());
  EXPECT_NE(explain_of(comparison).find("instead of"), std::string::npos);
  ASSERT_EQ(viewer.row(), viewer.alerts()[0].row);  // it is selected
  EXPECT_EQ(viewer.document()->rows[static_cast<size_t>(viewer.row())].path, "last_hidden_state");
  EXPECT_TRUE(std::ranges::any_of(viewer.inspector().sections, [](const InspectorSection& section) {
    return section.title == "Expected output" && section.lines.size() == 4;
  }));
}

TEST(ViewerRun, FloatsOfTwoWidthsHaveADifference) {
  Viewer viewer(make_executor);
  RunForm form = form_of(view_test::sample("llama_layer/model.onnx"));
  form.executor_a = "reference:double";
  run_to_end(viewer, form);
  ASSERT_TRUE(viewer.select_path("last_hidden_state"));
  ASSERT_TRUE(viewer.tensor().model.has_value()) << viewer.tensor().problem;
  EXPECT_TRUE(viewer.tensor().model->has_b());
  EXPECT_TRUE(viewer.tensor().problem.empty()) << viewer.tensor().problem;
  EXPECT_TRUE(can_show(viewer.tensor(), TensorMode::difference));
}

constexpr const char* kTexts = R"(
  node { name: "join" op_type: "SequenceConstruct" input: "words" input: "words" output: "list" }
  node { name: "pass" op_type: "Identity" input: "words" output: "same" }
  initializer { name: "words" dims: 2 data_type: 8 string_data: "one" string_data: "WORD" }
  output { name: "same" type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } } }
  output { name: "list" type { sequence_type { elem_type { tensor_type { elem_type: 8 } } } } }
)";

std::string texts_with(const std::string& name, const std::string& word) {
  std::string body = kTexts;
  body.replace(body.find("WORD"), 4, word);
  return model_file(name, body);
}

TEST(ViewerRun, ListsStringsAndSequencesSideBySide) {
  Viewer viewer(make_executor);
  RunForm form = form_of(texts_with("texts_a.textproto", "two"), texts_with("texts_b.textproto", "too"));
  form.executor_b = "reference";
  form.observe_all = true;
  run_to_end(viewer, form);
  ASSERT_TRUE(viewer.select_path("same")) << all_messages(viewer);
  ASSERT_TRUE(viewer.tensor().texts.has_value()) << viewer.tensor().problem;
  const auto& lines = viewer.tensor().texts->lines;
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].location, "[1]");
  EXPECT_EQ(lines[1].a, "\"two\"");
  EXPECT_EQ(lines[1].b, "\"too\"");
  EXPECT_TRUE(lines[1].are_mismatched);
  EXPECT_FALSE(lines[0].are_mismatched);
  ASSERT_TRUE(viewer.select_path("list"));
  ASSERT_TRUE(viewer.tensor().texts.has_value()) << viewer.tensor().problem;
  EXPECT_EQ(viewer.tensor().texts->lines.at(3).location, "[1][1]");
  // Texts have no distance.
  EXPECT_EQ(view_to_json(viewer).find("nan"), std::string::npos) << view_to_json(viewer);
}

// Its index is far outside, as only the run finds out; the product takes A long enough for B to have seen what is
// before.
constexpr const char* kFailing = R"(
  node { name: "first" op_type: "Abs" input: "x" output: "p" }
  node { name: "product" op_type: "MatMul" input: "p" input: "p" output: "r" }
  node { name: "sum" op_type: "ReduceSum" input: "r" output: "s" attribute { name: "keepdims" type: INT i: 0 } }
  node { name: "large" op_type: "Mul" input: "s" input: "factor" output: "m" }
  node { name: "whole" op_type: "Cast" input: "m" output: "i" attribute { name: "to" type: INT i: 7 } }
  node { name: "pick" op_type: "Gather" input: "p" input: "i" output: "y" }
  initializer { name: "factor" data_type: 1 float_data: 100000 }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 400 } dim { dim_value: 400 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } }
)";

TEST(ViewerRun, WhatARunThatFailedHasKeptCanBeLookedAt) {
  Viewer viewer(make_executor);
  run_to_end(viewer, form_of(model_file("failing.textproto", kFailing)));
  EXPECT_NE(all_messages(viewer).find("pick"), std::string::npos) << all_messages(viewer);
  EXPECT_TRUE(viewer.was_cut_short());
  ASSERT_TRUE(viewer.select_path("p"));
  ASSERT_TRUE(viewer.tensor().model.has_value()) << viewer.tensor().problem;
  EXPECT_TRUE(viewer.tensor().model->has_b());
}

TEST(ViewerRun, IsCalledByItsModelsAndRepeatedByItsCommand) {
  Viewer viewer(make_executor);
  const std::string model = view_test::sample("llama_layer/model.onnx");
  RunForm form = form_of(model);
  form.observe_all = true;
  run_to_end(viewer, form);
  EXPECT_EQ(viewer.document()->files, std::vector<std::string>{model});
  EXPECT_EQ(viewer.inspector().command, "parallax run " + model + " --with reference,cpu --observe-all");
  EXPECT_EQ(view_command(viewer).find("/parallax-gui-"), std::string::npos) << view_command(viewer);
}

TEST(ViewerRun, DumpsGoWithTheProgram) {
  auto viewer = std::make_unique<Viewer>(make_executor);
  run_to_end(*viewer, form_of(view_test::sample("llama_layer/model.onnx")));
  const std::filesystem::path folder = std::filesystem::path(viewer->document()->a->path()).parent_path();
  EXPECT_TRUE(std::filesystem::exists(folder));
  viewer.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(ViewerRun, AMessageSpeaksOfTheDialog) {
  Viewer viewer(make_executor);
  run_to_end(viewer, form_of(view_test::nan_fault().a));
  EXPECT_NE(all_messages(viewer).find("is a dump of a run, not a model"), std::string::npos) << all_messages(viewer);
  RunForm form = form_of(view_test::sample("llama_layer/model.onnx"));
  form.inputs = view_test::scratch("no such folder");
  run_to_end(viewer, form);
  EXPECT_NE(all_messages(viewer).find("inputs: there is no"), std::string::npos) << all_messages(viewer);
  EXPECT_EQ(all_messages(viewer).find("--inputs"), std::string::npos) << all_messages(viewer);
  EXPECT_EQ(viewer.messages.size(), 1U);  // what was said before went with what is shown now
}

TEST(ViewerRun, AMessageGoesWithAReloadThatWorks) {
  const view_test::Dumps& dumps = view_test::nan_fault();
  const std::string copy = view_test::scratch("copy.plx");
  std::filesystem::copy_file(dumps.a, copy, std::filesystem::copy_options::overwrite_existing);
  Viewer viewer(make_executor);
  viewer.open({copy, dumps.b});
  viewer.wait_idle();
  std::filesystem::resize_file(copy, 10);
  EXPECT_TRUE(viewer.tensor().model.has_value());  // the selected value was copied
  ASSERT_TRUE(viewer.select_path("p"));
  EXPECT_NE(viewer.tensor().problem.find("has changed on disk"), std::string::npos) << viewer.tensor().problem;
  viewer.reload();
  viewer.wait_idle();
  EXPECT_FALSE(viewer.messages.empty());
  std::filesystem::copy_file(dumps.a, copy, std::filesystem::copy_options::overwrite_existing);
  viewer.reload();
  viewer.wait_idle();
  EXPECT_TRUE(viewer.messages.empty()) << all_messages(viewer);
  ASSERT_TRUE(viewer.select_path("y"));
  EXPECT_TRUE(viewer.tensor().model.has_value());
}

// The first divergence, and no value that stands on one side alone.
TEST(ViewerRun, OfTwoModelsSelectsTheFirstDivergence) {
  constexpr const char* kBody = R"(
  node { name: "scale" op_type: "Mul" input: "c" input: "k" output: "ck" }
  node { name: "shift" op_type: "Add" input: "x" input: "ck" output: "q" }
  node { name: "tail" op_type: "Abs" input: "q" output: "y" }
  initializer { name: "k" data_type: 1 float_data: 2 }
  initializer { name: "c" data_type: 1 float_data: VALUE }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 6 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 6 } } } } }
)";
  const auto with_value = [&](const std::string& name, const std::string& value) {
    std::string body = kBody;
    body.replace(body.find("VALUE"), 5, value);
    return model_file(name, body);
  };
  for (const char* executor : {"reference", "cpu"}) {
    Viewer viewer(make_executor);
    RunForm form = form_of(with_value("shift_a.textproto", "1"), with_value("shift_b.textproto", "-1"));
    form.executor_b = executor;
    run_to_end(viewer, form);
    ASSERT_GE(viewer.row(), 0) << all_messages(viewer);
    const ValueComparison* value = viewer.document()->compared(viewer.row());
    EXPECT_EQ(value->verdict, Verdict::diverged) << value->path << ": " << value->reason;
  }
}

// The form's options reach the run, its dumps are kept, and the command that shows the view has the same options.
TEST(ViewerRun, HasTheOptionsOfTheCommandLine) {
  const std::string model = model_file("growing.textproto", R"(
    node { op_type: "Relu" input: "x" output: "y" }
    node { op_type: "Sigmoid" input: "y" output: "z" }
    input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "rows" } dim { dim_value: 3 } } } } }
    output { name: "z" type { tensor_type { elem_type: 1 } } }
  )");
  const std::string folder = view_test::scratch("kept dumps");
  RunForm form = form_of(model);
  form.seed = "7";
  form.dims = "rows=5";
  form.ranges = "x=-1..1";
  form.rtol = "1e-4";
  form.only = "'z'";
  form.dumps = folder;
  {
    Viewer viewer(make_executor);
    run_to_end(viewer, form);
    ASSERT_TRUE(viewer.messages.empty()) << all_messages(viewer);
    const Document& document = *viewer.document();
    ASSERT_EQ(document.comparison->values.size(), 1U);
    EXPECT_EQ(document.comparison->values[0].path, "z");
    EXPECT_EQ(document.comparison->values[0].limit.rtol, 1e-4);
    EXPECT_EQ(document.rows[static_cast<size_t>(document.find_row("z"))].shape, "5x3");
    EXPECT_EQ(command_of(*document.run),
              "parallax run " + model +
                  " --with reference,cpu --seed 7 --dim rows=5 --range x=-1..1 --only z --rtol 1e-4 --dump '" + folder +
                  "'");
  }
  EXPECT_TRUE(std::filesystem::exists(folder + "/A-reference.plx"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/B-cpu.plx"));
}

TEST(ViewerRun, AFormThatCannotBeReadNamesItsOption) {
  const auto problem = [](std::string RunForm::*field, const std::string& text) {
    Viewer viewer(make_executor);
    RunForm form = form_of(view_test::sample("cnn/model.onnx"));
    form.*field = text;
    const Status begun = viewer.run(form);
    EXPECT_FALSE(viewer.is_busy());
    return begun.ok() ? "" : begun.error().message;
  };
  EXPECT_EQ(problem(&RunForm::seed, "-1"), "--seed: '-1' is not a whole number of 0 or more");
  EXPECT_EQ(problem(&RunForm::dims, "rows"), "--dim 'rows': expected NAME=N");
  EXPECT_EQ(problem(&RunForm::only, "'a b"), "--only: a quote is left open in 'a b");
  EXPECT_NE(problem(&RunForm::rtol, "small").find("--rtol"), std::string::npos);
}

// The selected value: a side as it is, a measure as numbers, the slice as a table.
TEST(ViewerExport, TheValueIsWrittenAsItIsShown) {
  Viewer viewer;
  viewer.open({view_test::nan_fault().a, view_test::nan_fault().b});
  viewer.wait_idle();
  ASSERT_TRUE(viewer.tensor().model.has_value()) << viewer.tensor().problem;
  const TensorModel& model = *viewer.tensor().model;
  const std::string npy = view_test::scratch("value.npy"), csv = view_test::scratch("value.csv");
  viewer.set_tensor_mode(TensorMode::b);
  ASSERT_TRUE(viewer.export_to(npy, ExportSubject::value).ok());
  const auto written = read_npy(npy);
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(written->dtype(), model.dtype());
  ASSERT_EQ(written->shape(), model.shape());
  EXPECT_EQ(std::memcmp(written->view().data, model.b().view().data, model.b().size_bytes()), 0);
  viewer.set_tensor_mode(TensorMode::absolute);
  ASSERT_TRUE(viewer.export_to(npy, ExportSubject::value).ok());
  const auto measured = read_npy(npy);
  ASSERT_TRUE(measured.ok()) << measured.error().message;
  EXPECT_EQ(measured->dtype(), DType::float64);
  ASSERT_TRUE(viewer.export_to(csv, ExportSubject::value).ok());
  const std::string table = *read_file(csv);
  EXPECT_TRUE(table.starts_with("index,a,b,a-b,relative,ulp,severity\n"));
  EXPECT_EQ(std::ranges::count(table, '\n'), model.slice_count() + 1);
  EXPECT_EQ(subject_of("x.csv"), ExportSubject::value);
  const Status refused = viewer.export_to(view_test::scratch("value.svg"), ExportSubject::value);
  EXPECT_NE(refused.error().message.find(".npy or .csv or .png"), std::string::npos);
}

}  // namespace
}  // namespace parallax
