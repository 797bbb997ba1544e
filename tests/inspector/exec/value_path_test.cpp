// SPDX-License-Identifier: Apache-2.0
// Value paths: the grammar both ways, names that look like paths, and globs.
#include "inspector/exec/value_path.h"

#include <gtest/gtest.h>

#include "inspector/exec/path_parts.h"

namespace parallax {
namespace {

TEST(PathParts, ANameMayBeginWithASlash) {
  for (const std::string frames : {"", "loop.body[0]//", "/Loop.body[3]///If.then//"}) {
    for (const std::string name : {"x", "/Add_output_0", "/a/b"}) {
      EXPECT_EQ(name_begin(frames + name), frames.size()) << frames << " " << name;
    }
  }
}

TEST(ValuePath, PrintsAndParsesEveryFrame) {
  for (const std::string text :
       {"linear_3", "step[7]//logits", "node_loop.body[3]//add_1", "node_if.then//y", "node_if.else//y",
        "node_fn.call//t", "graph(decoder)//step[12]//a.b.body[0]//c.then//x/y", "/model/layers.0/MatMul_output_0",
        "graph(a%2F%2Fb)//v", "n%2F%2Fm.call//v"}) {
    const auto path = parse_value_path(text);
    ASSERT_TRUE(path.ok()) << text << ": " << path.error().message;
    EXPECT_EQ(to_string(*path), text);
  }
  const auto path = parse_value_path("node_loop.body[3]//add_1");
  EXPECT_EQ(path->frames, (std::vector<Frame>{{Frame::Kind::body, "node_loop", 3}}));
  EXPECT_EQ(path->name, "add_1");
}

TEST(ValuePath, ModuleNamesRoundTripWhateverTheyHold) {
  for (const std::string name :
       {"", "model.decoder", "a).call[0]", "f(x)", "l[3]", "a//b", "%2F", "a.body[1]", "x/", "("}) {
    for (const int64_t call : {int64_t{-1}, int64_t{0}, int64_t{12}}) {
      const ValuePath path{{{Frame::Kind::module, name, call}, {Frame::Kind::body, "module(n)", 2}}, "in/args/0"};
      const auto parsed = parse_value_path(to_string(path));
      ASSERT_TRUE(parsed.ok()) << to_string(path) << ": " << parsed.error().message;
      EXPECT_EQ(*parsed, path) << to_string(path);
    }
  }
  const auto path = parse_value_path("module(model.decoder).call[3]//in/kwargs/cache/0/key");
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path->frames, (std::vector<Frame>{{Frame::Kind::module, "model.decoder", 3}}));
  EXPECT_EQ(path->name, "in/kwargs/cache/0/key");
  EXPECT_TRUE(glob_matches("module(model.*).call[*]//out", "module(model.decoder).call[3]//out"));
  EXPECT_FALSE(glob_matches("module(model.*).call[*]//out", "module(model.decoder).call[3]//in/args/0"));
  EXPECT_EQ(static_glob("module(m).call[3]//out"), "module(m).call[*]//out");
}

TEST(ValuePath, FramesOfNodesKeepNamesThatLookLikeModules) {
  for (const Frame::Kind kind : {Frame::Kind::then_branch, Frame::Kind::call}) {
    const ValuePath path{{{kind, "module(n)", -1}}, "y"};
    const auto parsed = parse_value_path(to_string(path));
    ASSERT_TRUE(parsed.ok()) << to_string(path);
    EXPECT_EQ(*parsed, path);
  }
  for (const std::string text : {"module(//x", "module(a).call[]//x", "module(a).call[-1]//x", "module.call[0]//x"})
    EXPECT_FALSE(parse_value_path(text).ok()) << text;
}

TEST(ValuePath, NamesAreEscapedOnlyWhereNeeded) {
  for (const std::string name : {"a//b", "50%", "%2F", "x%25y", "///", "%%41", "plain/one", "a//"}) {
    const std::string escaped = escape_name(name);
    EXPECT_EQ(escaped.find("//"), std::string::npos) << name;
    EXPECT_EQ(unescape_name(escaped), name);
  }
  EXPECT_EQ(escape_name("a//b"), "a%2F%2Fb");
  EXPECT_EQ(escape_name("%2F"), "%252F");
  EXPECT_EQ(escape_name("50%"), "50%");
}

TEST(ValuePath, RefusesWhatIsNoPath) {
  for (const std::string text :
       {"", "a//", "nonsense//x", "n.body[]//x", "n.body[-1]//x", "n.body[1//x", "step[x]//y"}) {
    const auto path = parse_value_path(text);
    ASSERT_FALSE(path.ok()) << text;
    EXPECT_EQ(path.error().code, ErrorCode::usage);
  }
}

TEST(ValuePath, GlobsStayWithinAFrameUnlessDoubled) {
  EXPECT_TRUE(glob_matches("*", "linear_3"));
  EXPECT_TRUE(glob_matches("branch.else//er", "branch.else%2F%2Fer"));
  EXPECT_TRUE(glob_matches("branch*//er", "branch.else%2F%2Fer"));
  EXPECT_FALSE(glob_matches("branch.else//er", "branch.else%2F%2Fother"));
  EXPECT_TRUE(glob_matches("linear_?", "linear_3"));
  EXPECT_FALSE(glob_matches("linear_?", "linear_13"));
  EXPECT_FALSE(glob_matches("*", "n.body[3]//add"));
  EXPECT_TRUE(glob_matches("**", "n.body[3]//add"));
  EXPECT_TRUE(glob_matches("n.body[*]//add", "n.body[12]//add"));
  EXPECT_FALSE(glob_matches("n.body[3]//add", "n.body[4]//add"));
  EXPECT_TRUE(glob_matches("**//add*", "a.then//n.body[3]//add_7"));
  EXPECT_FALSE(glob_matches("*//add*", "a.then//n.body[3]//add_7"));
  EXPECT_TRUE(glob_matches("*/MatMul*", "/model/layers.0/MatMul_1"));
  EXPECT_FALSE(glob_matches("", "x"));
  EXPECT_TRUE(glob_matches("**", ""));
  EXPECT_FALSE(glob_matches("a*b*c*d", "abcabcabcabc"));
}

TEST(FrameStack, KeepsThePrefix) {
  FrameStack frames;
  EXPECT_EQ(frames.path_of("x"), "x");
  frames.push({Frame::Kind::body, "loop", 2});
  frames.push({Frame::Kind::else_branch, "if", -1});
  EXPECT_EQ(frames.path_of("x"), "loop.body[2]//if.else//x");
  frames.pop();
  EXPECT_EQ(frames.path_of("x"), "loop.body[2]//x");
  frames.pop();
  EXPECT_EQ(frames.prefix(), "");
}

TEST(Globs, StaticOnesStandForAnyIterationAndStep) {
  EXPECT_EQ(static_glob("loop.body[12]//if.then//x"), "loop.body[*]//if.then//x");
  EXPECT_EQ(static_glob("step[7]//logits"), "logits");
  EXPECT_EQ(static_glob("graph(encoder)//step[*]//h"), "h");
  EXPECT_EQ(static_glob("a[b]//c[]"), "a[b]//c[]");
  EXPECT_TRUE(glob_matches(static_glob("loop.body[1]//x*"), "loop.body[*]//x_2"));
  EXPECT_FALSE(glob_matches(static_glob("loop.body[1]//x*"), "other.body[*]//x_2"));
}

}  // namespace
}  // namespace parallax
