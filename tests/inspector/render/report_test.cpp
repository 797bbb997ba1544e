// SPDX-License-Identifier: Apache-2.0
// Reports of one made-up comparison: the JSON contract key by key, and what people read first.
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inspector/render/report_exchange.h"
#include "inspector/render/report_html.h"
#include "inspector/render/report_json.h"
#include "inspector/render/report_text.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

using nlohmann::json;

Comparison example() {
  Comparison comparison;
  comparison.executions = {{"reference", Side::a, "CPU", {{"threads", "2"}}, "abc", 1.5, "a.onnx"},
                           {"cpu", Side::b, "CPU", {}, "abc", 0.5, "b<1>.onnx"}};
  ValueComparison bad;
  bad.path = bad.a = bad.b = "layer<0>/add, \"x\"";
  bad.node = "node_add";
  bad.op = "Add";
  bad.dtype = "float32";
  bad.shape = {2, 3};
  bad.verdict = Verdict::diverged;
  bad.severity = std::numeric_limits<double>::infinity();
  bad.limit = {1e-5, 0, LimitSource::table};
  bad.metrics = Metrics{};
  bad.metrics->worst_index = {1, 2};
  bad.metrics->snr_db = -std::numeric_limits<double>::infinity();
  bad.metrics->worst_b = std::numeric_limits<double>::quiet_NaN();
  ValueComparison missing;
  missing.path = missing.a = "mul_1";
  missing.reason = "fused into node_add";
  missing.dtype = "float32";
  comparison.values = {bad, missing};
  conclude(comparison);
  return comparison;
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& item : object.items()) keys.insert(item.key());
  return keys;
}

TEST(ReportJson, HasTheKeysOfTheContract) {
  const json document = json::parse(comparison_to_json(example()));
  EXPECT_EQ(keys_of(document), (std::set<std::string>{"parallax", "verdict", "executions", "summary",
                                                      "first_divergence", "causes", "values"}));
  EXPECT_EQ(keys_of(document["executions"][0]),
            (std::set<std::string>{"name", "side", "device", "settings", "model_sha256", "wall_ms"}));
  EXPECT_EQ(keys_of(document["summary"]),
            (std::set<std::string>{"values", "compared", "passed", "diverged", "mistrusted", "not_compared"}));
  const json& value = document["values"][0];
  EXPECT_EQ(keys_of(value),
            (std::set<std::string>{"path", "a", "b", "matched_by", "node", "op", "dtype", "shape", "verdict",
                                   "severity", "limit", "reason", "accepted", "metrics", "noise"}));
  EXPECT_EQ(value["accepted"], nullptr);
  EXPECT_EQ(keys_of(value["limit"]), (std::set<std::string>{"rtol", "atol", "from"}));
  EXPECT_EQ(keys_of(value["metrics"]),
            (std::set<std::string>{"elements", "finite_pairs", "max_abs", "max_rel", "mean_abs", "rmse", "rel_l2",
                                   "cosine", "snr_db", "max_ulp", "mismatches", "nan_a", "nan_b", "inf_a", "inf_b",
                                   "worst_index", "worst_a", "worst_b"}));
}

TEST(Reports, TellWhatWasAcceptedBeyondItsLimit) {
  Comparison comparison = example();
  ValueComparison& value = comparison.values[0];
  value.verdict = Verdict::pass;
  value.accepted = {"near tie", "scores differ by 1 ULP"};
  value.reason = "near tie: scores differ by 1 ULP";
  const json written = json::parse(comparison_to_json(comparison))["values"][0];
  EXPECT_EQ(written["accepted"], (json{{"reason", "near tie"}, {"evidence", "scores differ by 1 ULP"}}));
  EXPECT_EQ(written["verdict"], "pass");
  EXPECT_EQ(written["severity"], "inf");
  EXPECT_EQ(written["limit"]["from"], "table");
  const std::string reported = "accepted as near tie: scores differ by 1 ULP";
  EXPECT_NE(comparison_to_text(comparison, {}).find(reported), std::string::npos);
  EXPECT_NE(comparison_to_netron(comparison).find(reported), std::string::npos);
  EXPECT_NE(comparison_to_csv(comparison).find("pass,inf"), std::string::npos);
  EXPECT_EQ(style_of(value).badge, "accepted inf");
  EXPECT_EQ(style_of(value).border_width, 1);
}

TEST(Reports, TellTheOriginOfACause) {
  Comparison comparison = example();
  Cause cause;
  cause.node = "node_add";
  cause.op = "Add";
  comparison.causes = {cause};
  EXPECT_EQ(json::parse(comparison_to_json(comparison))["causes"][0]["source"], nullptr);
  EXPECT_FALSE(json::parse(comparison_to_json(comparison))["causes"][0].contains("group"));
  cause.source_module = "decoder.attention";
  cause.source_line = "model.py:13";
  cause.source_operator = "aten.softmax.int";
  cause.group = {"node_exp", "node_add"};
  comparison.causes = {cause};
  const json reported = json::parse(comparison_to_json(comparison))["causes"][0];
  EXPECT_EQ(reported["source"],
            (json{{"module", "decoder.attention"}, {"line", "model.py:13"}, {"operator", "aten.softmax.int"}}));
  EXPECT_EQ(reported["group"], (json{"node_exp", "node_add"}));
  EXPECT_NE(comparison_to_text(comparison, {}).find("from aten.softmax.int in decoder.attention, model.py:13\n"),
            std::string::npos);
  EXPECT_NE(comparison_to_html(comparison, {}).find("<code>aten.softmax.int</code>"), std::string::npos);
}

TEST(Reports, NameTheNodeOfB) {
  Comparison comparison = example();
  Cause cause;
  cause.node = "reshape";
  cause.op = "Reshape";
  comparison.causes = {cause};
  EXPECT_TRUE(json::parse(comparison_to_json(comparison))["causes"][0]["node_b"].is_null());
  EXPECT_EQ(comparison_to_text(comparison, {}).find("in B"), std::string::npos);
  comparison.causes[0].node_b = "reshape";
  EXPECT_EQ(json::parse(comparison_to_json(comparison))["causes"][0]["node_b"], "reshape");
  EXPECT_EQ(comparison_to_text(comparison, {}).find("in B"), std::string::npos);
  comparison.causes[0].node_b = "Attention_<0>";
  EXPECT_EQ(json::parse(comparison_to_json(comparison))["causes"][0]["node_b"], "Attention_<0>");
  const std::string text = comparison_to_text(comparison, {});
  EXPECT_NE(text.find("cause 1: Reshape 'reshape' (in B 'Attention_<0>'), side"), std::string::npos) << text;
  EXPECT_NE(comparison_to_html(comparison, {}).find("in B</span> <code>Attention_&lt;0&gt;</code>"), std::string::npos);
  EXPECT_NE(comparison_to_netron(comparison).find("Attention_<0>"), std::string::npos);
  EXPECT_NE(comparison_to_junit(comparison).find("cause 1 (in B 'Attention_&lt;0&gt;')"), std::string::npos)
      << comparison_to_junit(comparison);
}

TEST(ReportText, SaysTheShapesWhereTheseDiffer) {
  Comparison comparison = example();
  comparison.values[0].shape_a = "[6,3]";
  comparison.values[0].shape_b = "[18,3]";
  EXPECT_NE(comparison_to_text(comparison, {}).find("\n  shape [6,3] in A and [18,3] in B\n"), std::string::npos);
}

TEST(ReportJson, SaysWhatTheComparisonSays) {
  const json document = json::parse(comparison_to_json(example()));
  EXPECT_EQ(document["verdict"], "diverged");
  EXPECT_EQ(document["first_divergence"], (json{{"path", "layer<0>/add, \"x\""}, {"node", "node_add"}, {"op", "Add"}}));
  EXPECT_EQ(document["executions"][1]["side"], "B");
  const json& value = document["values"][0];
  EXPECT_EQ(value["severity"], "inf");
  EXPECT_EQ(value["metrics"]["snr_db"], "-inf");
  EXPECT_EQ(value["metrics"]["worst_b"], "nan");
  EXPECT_EQ(value["metrics"]["worst_index"], (json{1, 2}));
  EXPECT_TRUE(value["reason"].is_null());
  const json& missing = document["values"][1];
  EXPECT_EQ(missing["verdict"], "not_compared");
  EXPECT_EQ(missing["reason"], "fused into node_add");
  EXPECT_TRUE(missing["metrics"].is_null());
  EXPECT_TRUE(missing["b"].is_null());
  EXPECT_EQ(missing["matched_by"], "path");
  EXPECT_FALSE(document.contains("expected"));
  Comparison with_expected = example();
  with_expected.has_expected = true;
  with_expected.expected = with_expected.values;
  const json expected = json::parse(comparison_to_json(with_expected))["expected"];
  ASSERT_EQ(expected.size(), 2U);
  EXPECT_EQ(keys_of(expected[0]), keys_of(value));
}

// Keys beyond the contract are there only where they have something to say.
TEST(ReportJson, SaysWhyItIsInconclusiveAndWhatIsDamaged) {
  Comparison comparison = example();
  comparison.values[0].verdict = Verdict::pass;
  comparison.values[1].note = "damaged in B";
  comparison.damages = {{Side::b, "mul_1", "value 'mul_1': <its CRC> is wrong"}};
  conclude(comparison);
  const json document = json::parse(comparison_to_json(comparison));
  EXPECT_EQ(document["verdict"], "inconclusive");
  EXPECT_EQ(document["reason"], "value 'mul_1' is damaged in B");
  EXPECT_EQ(document["error"],
            (json{{"code", 5}, {"message", "value 'mul_1': <its CRC> is wrong"}, {"node", nullptr}, {"op", nullptr}}));
  const std::string text = comparison_to_text(comparison, {});
  EXPECT_NE(text.find("\n  value 'mul_1' is damaged in B\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\ndamaged in B: value 'mul_1': <its CRC> is wrong\n"), std::string::npos) << text;
  const std::string page = comparison_to_html(comparison, {});
  EXPECT_NE(page.find("<p class=\"damage\">damaged in B: value 'mul_1': &lt;its CRC&gt; is wrong</p>"),
            std::string::npos);
}

TEST(ReportJson, SaysHowValuesCameFromADevice) {
  Comparison comparison = example();
  comparison.executions[1].capture = CaptureCounts{20, 24000, 1200, 3, 0.5};
  const json document = json::parse(comparison_to_json(comparison));
  EXPECT_FALSE(document["executions"][0].contains("capture"));
  EXPECT_EQ(document["executions"][1]["capture"],
            (json{{"copies", 20}, {"bytes", 24000}, {"bytes_in_pieces", 1200}, {"waits", 3}, {"waited_ms", 0.5}}));
}

TEST(ReportJson, Errors) {
  const json document = json::parse(error_to_json(unsupported("no kernel").at_node("n", "Foo-1")));
  EXPECT_EQ(document["error"],
            (json{{"code", 3}, {"message", document["error"]["message"]}, {"node", "n"}, {"op", "Foo"}}));
  EXPECT_EQ(plain_operator("com.microsoft.Gelu-1"), "Gelu");
  EXPECT_EQ(plain_operator("aten.add"), "aten.add");
}

TEST(ReportText, VerdictFirstAndColorOnlyWhenAsked) {
  const std::string text = comparison_to_text(example(), {});
  EXPECT_EQ(text.find("diverged"), 0U) << text;
  EXPECT_NE(text.find("node_add"), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  TextReportOptions colored;
  colored.color = true;
  EXPECT_NE(comparison_to_text(example(), colored).find('\033'), std::string::npos);
}

TEST(ReportCsv, QuotesWhatNeedsQuotes) {
  const std::string text = comparison_to_csv(example());
  EXPECT_NE(text.find("\"layer<0>/add, \"\"x\"\"\""), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(ReportHtml, IsOneFileWithTheSameDocument) {
  Comparison comparison = example();
  comparison.values[0].node = "</script><b>";
  const std::string page = comparison_to_html(comparison, {"<?xml version=\"1.0\"?>\n<svg width=\"1\"></svg>", {}, ""});
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_NE(page.find("<span class=\"verdict diverged\">diverged</span>"), std::string::npos);
  EXPECT_NE(page.find("<code>layer&lt;0&gt;/add, &quot;x&quot;</code>"), std::string::npos);
  EXPECT_NE(page.find("<svg width=\"1\">"), std::string::npos);
  EXPECT_EQ(page.find("<?xml"), std::string::npos);
  EXPECT_NE(page.find("b&lt;1&gt;.onnx"), std::string::npos);
  EXPECT_NE(page.find("data-verdict=\"diverged\""), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);  // nothing is fetched
  const std::string mark = "<script id=\"data\" type=\"application/json\">";
  const size_t begin = page.find(mark) + mark.size();
  const json data = json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data["report"]["values"][0]["node"], "</script><b>");
  EXPECT_EQ(data["styles"].size(), 2U);
}

TEST(ReportHtml, HasNoTimeOfASideThatDidNotRun) {
  Comparison comparison = example();
  EXPECT_NE(comparison_to_html(comparison, {}).find("<td class=\"time\">0.5 ms</td>"), std::string::npos);
  comparison.executions[1] = {"imported", Side::b, "", {}, "", 0, ""};
  const std::string page = comparison_to_html(comparison, {});
  EXPECT_NE(page.find("<td class=\"time\">1.5 ms</td>"), std::string::npos);
  EXPECT_NE(page.find("<td class=\"time\"></td>"), std::string::npos);
  EXPECT_EQ(page.find("0.0 ms"), std::string::npos);
}

// JSON has the integers themselves; a browser, which would round them, gets their digits.
TEST(ReportHtml, IntegersBeyondDoubleAreTexts) {
  Comparison comparison = example();
  const int64_t big = (int64_t{1} << 62) + 1;
  comparison.values[0].metrics->worst_integers = Metrics::Integers{big, -1, true};
  EXPECT_EQ(json::parse(comparison_to_json(comparison))["values"][0]["metrics"]["worst_a"], big);
  EXPECT_EQ(json::parse(comparison_to_json(comparison))["values"][0]["metrics"]["worst_b"], UINT64_MAX);
  const std::string page = comparison_to_html(comparison, {});
  EXPECT_NE(page.find("\"worst_a\":\"4611686018427387905\",\"worst_b\":\"18446744073709551615\""), std::string::npos);
  comparison.values[0].metrics->worst_integers = Metrics::Integers{big, -big, false};
  EXPECT_NE(comparison_to_html(comparison, {})
                .find("\"worst_a\":\"4611686018427387905\",\"worst_b\":\"-4611686018427387905\""),
            std::string::npos);
  comparison.values[0].metrics->worst_integers = Metrics::Integers{7, INT64_MIN, false};
  EXPECT_NE(comparison_to_html(comparison, {}).find("\"worst_a\":7,\"worst_b\":\"-9223372036854775808\""),
            std::string::npos);
}

}  // namespace
}  // namespace parallax
