// SPDX-License-Identifier: Apache-2.0
// The built program, driven by scripts as people would: without a display, and in a window under Xvfb.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "gui/app/png_file.h"
#include "inspector/base/mapped_file.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax::gui {
namespace {

struct Answer {
  int exit_code = -1;
  std::string text;
};

Answer run_command(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  Answer answer;
  std::array<char, 4096> buffer{};
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    answer.text.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

Answer run(const std::string& arguments, const std::string& before = "") {
  return run_command(before + " '" PX_GUI_PROGRAM "' " + arguments + " 2>&1");
}

std::string files_of(const view_test::Dumps& dumps) { return "'" + dumps.a + "' '" + dumps.b + "'"; }
std::string script(const std::string& name) {
  return " --script '" PX_SOURCE_DIR "/samples/walkthroughs/" + name + ".script'";
}

bool has_egl() {
  static const bool has = run("--shot '" + view_test::scratch("probe.png") + "'").exit_code == 0;
  return has;
}

#define PX_PROGRAM_NEEDS_EGL \
  if (!has_egl()) GTEST_SKIP() << "no EGL driver here"

// Mesa ends the program where it gets no memory.
TEST(Program, ALimitedAddressSpaceEndsInASentenceOrAPicture) {
  PX_PROGRAM_NEEDS_EGL;
  int pictures = 0, refusals = 0;
  for (int limit = 400; limit <= 1400; limit += 50) {
    const Answer answer =
        run("'" PX_SOURCE_DIR "/samples/cnn/model.onnx' --shot '" + view_test::scratch("limit.png") + "'",
            "prlimit --as=" + std::to_string(limit << 20));
    EXPECT_TRUE(answer.exit_code == 0 || answer.exit_code == 4) << limit << " MiB: " << answer.text;
    if (answer.exit_code == 4) {
      EXPECT_NE(answer.text.find("MiB of address space are left"), std::string::npos) << answer.text;
      EXPECT_EQ(std::ranges::count(answer.text, '\n'), 1) << answer.text;
    }
    pictures += answer.exit_code == 0;
    refusals += answer.exit_code == 4;
  }
  EXPECT_GT(pictures, 0);
  EXPECT_GT(refusals, 0);
}

// The name of the culprit goes into the script that looks for it.
std::string with_node(const std::string& name, const std::string& node) {
  std::string text = *read_file(PX_SOURCE_DIR "/samples/walkthroughs/" + name + ".script");
  for (size_t at = 0; (at = text.find("CULPRIT", at)) != std::string::npos;) text.replace(at, 7, node);
  const std::string path = view_test::scratch(name + ".script");
  EXPECT_TRUE(write_file(path, text).ok());
  return " --script '" + path + "'";
}

TEST(Program, FindsASeededFaultInAtMostFourKeys) {
  PX_PROGRAM_NEEDS_EGL;
  const Answer answer =
      run(files_of(view_test::llama_fault()) + with_node("find_fault", view_test::llama_culprit_node()));
  EXPECT_EQ(answer.exit_code, 0) << answer.text;
}

TEST(Program, StepsThroughTheIterationsOfALoop) {
  PX_PROGRAM_NEEDS_EGL;
  const Answer answer = run(files_of(view_test::loop_fault()) + script("loop_iterations"));
  EXPECT_EQ(answer.exit_code, 0) << answer.text;
}

TEST(Program, ShowsNaN) {
  PX_PROGRAM_NEEDS_EGL;
  const Answer answer = run(files_of(view_test::nan_fault()) + script("look_at_nan"));
  EXPECT_EQ(answer.exit_code, 0) << answer.text;
}

TEST(Program, WritesThePictureAndTheViewItWasAskedFor) {
  PX_PROGRAM_NEEDS_EGL;
  const std::string state = view_test::scratch("state.json"), shot = view_test::scratch("shot.png"),
                    out = view_test::scratch("out.json");
  ASSERT_TRUE(write_file(state, R"({"theme": "light", "preset": "graph", "colour_by": "max_abs"})").ok());
  const Answer answer = run(files_of(view_test::llama_fault()) + " --size 900x700 --state '" + state + "' --shot '" +
                            shot + "' --state-out '" + out + "'");
  ASSERT_EQ(answer.exit_code, 0) << answer.text;
  const auto picture = read_png(shot);
  ASSERT_TRUE(picture.ok());
  EXPECT_EQ(picture->width, 900);
  EXPECT_EQ(picture->height, 700);
  const std::string reported = *read_file(out);
  EXPECT_NE(reported.find("\"preset\": \"graph\""), std::string::npos);
  EXPECT_NE(reported.find("\"colour_by\": \"max_abs\""), std::string::npos);
  EXPECT_NE(reported.find(view_test::llama_culprit_node()), std::string::npos);
}

TEST(Program, WritesItsStateWithoutAWindowAsItsHelpSays) {
  PX_PROGRAM_NEEDS_EGL;
  const std::string out = view_test::scratch("alone.json");
  const Answer answer =
      run("'" + view_test::sample("cnn/model.onnx") + "' --state-out '" + out + "'", "env -u DISPLAY");
  ASSERT_EQ(answer.exit_code, 0) << answer.text;
  EXPECT_NE((*read_file(out)).find("cnn/model.onnx"), std::string::npos);
  EXPECT_NE(run("--help").text.find("--state-out F.json  write what is shown and end; with --window whenever"),
            std::string::npos);
}

TEST(Program, AFailedExpectationNamesItsLine) {
  PX_PROGRAM_NEEDS_EGL;
  const std::string path = view_test::scratch("wrong.script");
  ASSERT_TRUE(write_file(path, "# comment\nkey N\nexpect /selection/node nobody\n").ok());
  const Answer answer = run(files_of(view_test::llama_fault()) + " --script '" + path + "'");
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_NE(answer.text.find("wrong.script:3"), std::string::npos) << answer.text;
}

TEST(Program, AKeyThatNoCommandHasFailsItsScript) {
  PX_PROGRAM_NEEDS_EGL;
  const std::string path = view_test::scratch("key.script");
  ASSERT_TRUE(write_file(path, "key ?\n").ok());
  const Answer answer = run("--script '" + path + "'");
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_NE(answer.text.find("Shift+Slash"), std::string::npos) << answer.text;
}

TEST(Program, ReportsWrongUseInASentence) {
  EXPECT_EQ(run("--sideways").exit_code, 2);
  EXPECT_EQ(run("--size 3x3 --shot x.png").exit_code, 2);
  EXPECT_EQ(run("a b c").exit_code, 2);
  EXPECT_EQ(run("--help").exit_code, 0);
  EXPECT_EQ(run("--version").exit_code, 0);
  if (!has_egl()) return;
  const std::string missing = view_test::scratch("none.plx");
  EXPECT_EQ(run("'" + missing + "' --shot '" + view_test::scratch("x.png") + "'").exit_code, 5);
}

TEST(Program, ReplacesNoInputAndForeignFilesOnlyWhenForced) {
  const std::string model = view_test::sample("cnn/model.onnx"), letter = view_test::scratch("letter.png");
  std::filesystem::remove(letter);
  ASSERT_EQ(std::system(("printf letter > '" + letter + "'").c_str()), 0);
  const std::string copy = view_test::scratch("copy.onnx");
  std::filesystem::copy_file(model, copy, std::filesystem::copy_options::overwrite_existing);
  for (const char* option : {"--shot", "--state-out"}) {
    const Answer over = run("'" + copy + "' --force " + option + " '" + copy + "'");
    EXPECT_EQ(over.exit_code, 2) << over.text;
    EXPECT_NE(over.text.find("which is read"), std::string::npos) << over.text;
    const Answer foreign = run("'" + copy + "' " + std::string(option) + " '" + letter + "'");
    EXPECT_EQ(foreign.exit_code, 2) << foreign.text;
    EXPECT_NE(foreign.text.find("--force"), std::string::npos) << foreign.text;
  }
  EXPECT_EQ(*read_file(letter), "letter");
  EXPECT_EQ(*read_file(copy), *read_file(model));
  PX_PROGRAM_NEEDS_EGL;
  const std::string path = view_test::scratch("export.script");
  for (const char* verb : {"shot", "export", "state-out"}) {
    ASSERT_TRUE(write_file(path, std::string(verb) + " " + letter + "\n").ok());
    const Answer answer = run("'" + copy + "' --script '" + path + "'");
    EXPECT_EQ(answer.exit_code, 2) << verb << answer.text;
    EXPECT_EQ(*read_file(letter), "letter") << verb;
  }
  ASSERT_EQ(run("'" + copy + "' --force --shot '" + letter + "'").exit_code, 0);
  EXPECT_TRUE(read_png(letter).ok());
  EXPECT_EQ(run("'" + copy + "' --shot '" + letter + "'").exit_code, 0);  // it is Parallax's own now
}

// File sizes and descriptors of a small machine: a sentence, and no signal. (Less memory than Mesa needs ends in Mesa.)
TEST(Program, EndsWithASentenceAtLimits) {
  PX_PROGRAM_NEEDS_EGL;
  const std::string line =
      " '" + view_test::sample("cnn/model.onnx") + "' --shot '" + view_test::scratch("limit.png") + "'";
  const auto limited = [&](const std::string& limit) {
    return run_command("( ulimit " + limit + "; exec '" PX_GUI_PROGRAM "'" + line + " ) 2>&1 >/dev/null");
  };
  const Answer size = limited("-f 1");
  EXPECT_EQ(size.exit_code, 5) << size.text;
  EXPECT_NE(size.text.find("parallax-gui: cannot write"), std::string::npos) << size.text;
  const Answer descriptors = limited("-n 5");
  EXPECT_TRUE(descriptors.exit_code >= 2 && descriptors.exit_code <= 5) << descriptors.text;
  EXPECT_NE(descriptors.text.find("parallax-gui: "), std::string::npos) << descriptors.text;
}

// A real window, a real X server: the same script must do the same.
TEST(Program, RunsInAWindowUnderXvfb) {
  if (std::system("command -v xvfb-run >/dev/null 2>&1") != 0) GTEST_SKIP() << "no xvfb-run here";
  const std::string out = view_test::scratch("window.json");
  const Answer answer = run(files_of(view_test::llama_fault()) + " --window" +
                                with_node("find_fault", view_test::llama_culprit_node()) + " --state-out '" + out + "'",
                            "LIBGL_ALWAYS_SOFTWARE=1 xvfb-run -a -s '-screen 0 1400x900x24'");
  ASSERT_EQ(answer.exit_code, 0) << answer.text;
  EXPECT_NE((*read_file(out)).find(view_test::llama_culprit_node()), std::string::npos);
}

TEST(Program, AWindowGrowsWithItsTextAsFarAsTheScreenHasRoom) {
  if (std::system("command -v xvfb-run >/dev/null 2>&1") != 0) GTEST_SKIP() << "no xvfb-run here";
  const std::string shot = view_test::scratch("grown.png"), path = view_test::scratch("grown.script");
  ASSERT_TRUE(write_file(path, "shot " + shot + "\n").ok());
  const auto size_on = [&](const std::string& screen, const std::string& options) {
    const Answer answer = run("--window --force " + options + " --script '" + path + "'",
                              "LIBGL_ALWAYS_SOFTWARE=1 xvfb-run -a -s '-screen 0 " + screen + "x24'");
    EXPECT_EQ(answer.exit_code, 0) << answer.text;
    const auto picture = read_png(shot);
    return picture.ok() ? std::pair(picture->width, picture->height) : std::pair(0, 0);
  };
  EXPECT_EQ(size_on("3840x2160", "--scale 2"), std::pair(2560, 1440));
  EXPECT_EQ(size_on("1600x1000", "--scale 2"), std::pair(1440, 900));
  EXPECT_EQ(size_on("3840x2160", "--scale 2 --size 1280x720"), std::pair(1280, 720));
}

// The first of the named programs that is not here; empty where all are.
std::string missing_tool(std::initializer_list<std::string> tools) {
  for (const std::string& tool : tools) {
    if (std::system(("command -v " + tool + " >/dev/null").c_str()) != 0) return tool;
  }
  return "";
}

// Real keys and a real mouse: what a person does, seen from outside.
TEST(Program, IsDrivenByKeysAndMouseThroughTheXServer) {
  const std::string missing = missing_tool({"xvfb-run", "xdotool", "setxkbmap", "python3"});
  if (!missing.empty()) GTEST_SKIP() << "no " << missing << " here";
  const std::string command = "xvfb-run -a -s '-screen 0 1280x720x24' python3 '" PX_SOURCE_DIR
                              "/tests/gui/app/drive_window.py' '" PX_GUI_PROGRAM "' " +
                              files_of(view_test::llama_fault()) + " '" + view_test::llama_culprit_node() + "' '" +
                              view_test::sample("cnn/model.onnx") + "' 2>&1";
  const Answer answer = run_command(command);
  EXPECT_EQ(answer.exit_code, 0) << answer.text;
  EXPECT_NE(answer.text.find("states seen"), std::string::npos) << answer.text;
}

struct WalkThrough {
  std::string name, size, scale, tasks;
};

class WalkThroughs : public testing::TestWithParam<WalkThrough> {};

// The tasks that people come for, each as walk_through.py describes it, on a small screen and on a large one.
TEST_P(WalkThroughs, AreDoneByKeysAndMouse) {
  const std::string missing = missing_tool({"xvfb-run", "xdotool", "xsel", "python3"});
  if (!missing.empty()) GTEST_SKIP() << "no " << missing << " here";
  const auto& [name, size, scale, tasks] = GetParam();
  const Answer answer = run_command("xvfb-run -a -s '-screen 0 " + size +
                                    "x24' python3 '" PX_SOURCE_DIR "/tests/gui/app/walk_through.py' '" PX_GUI_PROGRAM
                                    "' '" PX_PROGRAM "' '" PX_SOURCE_DIR "/samples' " +
                                    size + " " + scale + " " + tasks + " 2>&1");
  EXPECT_EQ(answer.exit_code, 0) << answer.text;
  EXPECT_NE(answer.text.find("states seen"), std::string::npos) << answer.text;
}

constexpr const char* kDumps = "find_fault compare_three_runs copy_rows open_a_folder";
constexpr const char* kValues = "look_at_a_weight compare_models look_at_nan step_through_a_loop";

INSTANTIATE_TEST_SUITE_P(Program, WalkThroughs,
                         testing::Values(WalkThrough{"DumpsOnASmallScreen", "1280x720", "1", kDumps},
                                         WalkThrough{"ValuesOnASmallScreen", "1280x720", "1", kValues},
                                         WalkThrough{"DumpsOnALargeScreen", "3840x2160", "2", kDumps},
                                         WalkThrough{"ValuesOnALargeScreen", "3840x2160", "2", kValues}),
                         [](const auto& walk) { return walk.param.name; });

}  // namespace
}  // namespace parallax::gui
