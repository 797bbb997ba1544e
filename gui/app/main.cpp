// SPDX-License-Identifier: Apache-2.0
// The program `parallax-gui`: a window on a model, a dump or two dumps; with --shot and --script, pictures without a
// display.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gui/app/desktop_chooser.h"
#include "gui/app/png_file.h"
#include "gui/app/script.h"
#include "gui/app/settings.h"
#include "gui/app/system_fonts.h"
#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/program_start.h"
#include "inspector/base/shown_text.h"
#include "inspector/executors/make_executor.h"
#include "inspector/workbench/doctor/build_description.h"

namespace parallax::gui {
namespace {

constexpr const char* kHelp =
    R"(parallax-gui [MODEL | A.onnx B.onnx [A.plx B.plx] | DUMP | A.plx B.plx [C.plx ...] | FOLDER]

Finds the first tensor at which two runs of an ONNX model diverge: the graph colored by error, and every element of
every value.
Two models are shown next to each other with what differs in their graphs, attributes and constants; nothing is
executed. With a dump of each, and where two dumps are of models whose graphs differ, their values are compared, too.
FOLDER holds the two dumps that `parallax run --dump FOLDER` wrote. Of more than two dumps the first is the baseline of
all; Alt+1 to Alt+9 choose the other one. Press ? for the keys.

  --shot F.png        draw once to a picture and end; needs no display
  --state S.json      how it is to look (see gui/app/README.md); or the JSON itself
  --script F          do what a script says and end; needs no display
  --state-out F.json  write what is shown and end; with --window whenever the window has come to rest
  --size WxH          of window or picture (1280x720; a window by default times the scale)
  --scale X           size of text and lines (1; what the screen asks for in a window)
  --fps N             draw a window at most N times a second, over a slow connection; keys and clicks are kept
  --window            open a window for --script, --shot and --state-out, too
  --force             replace files that Parallax did not write, without a question; never one that is read
  --help, --version
)";

struct Options {
  std::vector<std::string> files;
  std::string shot, state, script, state_out;
  RenderTargetOptions target;
  bool window = false, force = false, help = false, version = false;
};

Status parse_size(const std::string& text, RenderTargetOptions& target) {
  const bool is_size = std::sscanf(text.c_str(), "%dx%d", &target.width, &target.height) == 2;
  const auto fits = [](int length) { return length >= 64 && length <= 8192; };
  target.has_size = is_size && fits(target.width) && fits(target.height);
  if (target.has_size) return {};
  return usage_error("--size needs WIDTHxHEIGHT, each from 64 to 8192");
}

Status parse_scale(const std::string& text, RenderTargetOptions& target) {
  char* end = nullptr;
  target.scale = std::strtof(text.c_str(), &end);
  if (end != text.c_str() && *end == '\0' && target.scale >= 0.5F && target.scale <= 4) return {};
  return usage_error("--scale needs a number from 0.5 to 4");
}

Status parse_pictures(const std::string& text, RenderTargetOptions& target) {
  char* end = nullptr;
  target.most_pictures_per_second = std::strtof(text.c_str(), &end);
  if (end != text.c_str() && *end == '\0' && target.most_pictures_per_second >= 1) return {};
  return usage_error("--fps needs a number from 1");
}

Result<Options> parse(const std::vector<std::string>& arguments) {
  Options options;
  struct Flag {
    std::string_view name;
    bool* target;
  };
  const std::array<Flag, 4> flags = {{{"--window", &options.window},
                                      {"--force", &options.force},
                                      {"--help", &options.help},
                                      {"--version", &options.version}}};
  struct Text {
    std::string_view name;
    std::string* target;
  };
  const std::array<Text, 4> texts = {{{"--shot", &options.shot},
                                      {"--state", &options.state},
                                      {"--script", &options.script},
                                      {"--state-out", &options.state_out}}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--")) {
      options.files.push_back(argument);
      continue;
    }
    const auto flag = std::ranges::find(flags, argument, &Flag::name);
    if (flag != flags.end()) {
      *flag->target = true;
      continue;
    }
    if (i + 1 == arguments.size())
      return usage_error(fmt::format("'{}' is no option, or needs a value (see --help)", argument));
    const std::string& value = arguments[++i];
    const auto text = std::ranges::find(texts, argument, &Text::name);
    if (text != texts.end()) {
      *text->target = value;
    } else if (argument == "--scale") {
      PX_TRY(parse_scale(value, options.target));
    } else if (argument == "--fps") {
      PX_TRY(parse_pictures(value, options.target));
    } else if (argument == "--size") {
      PX_TRY(parse_size(value, options.target));
    } else {
      return usage_error(fmt::format("there is no option '{}' (see --help)", argument));
    }
  }
  const auto dumps =
      std::ranges::count_if(options.files, [](const std::string& file) { return file.ends_with(".plx"); });
  const auto models = static_cast<std::ptrdiff_t>(options.files.size()) - dumps;
  if (options.files.size() > 10 || (options.files.size() > 2 && models > 0 && (models != 2 || dumps != 2)))
    return usage_error(
        "name one or two models, one or two dumps, two models with a dump of each (A.onnx B.onnx A.plx B.plx), or a "
        "baseline and up to nine other dumps (.plx)");
  return options;
}

// A file, or the state itself.
Status apply_state(Viewer& viewer, const std::string& state) {
  return apply_view(viewer, state.starts_with('{') ? state : PX_TRY(read_file(state)));
}

// Those that are named, else those of the state.
std::vector<std::string> files_to_open(const Options& options) {
  if (!options.files.empty() || options.state.empty()) return options.files;
  if (options.state.starts_with('{')) return files_of_view(options.state);
  const auto text = read_file(options.state);
  return text.ok() ? files_of_view(*text) : std::vector<std::string>();
}

// The views of files, kept whenever the window has come to rest.
class ViewKeeper {
 public:
  explicit ViewKeeper(std::string settings) : settings_(std::move(settings)) {}
  void restore(Viewer& viewer) {
    if (!viewer.was_touched()) restore_session(settings_, viewer);
    restored_ = path_of(viewer);
    last_ = session_to_json(viewer);
  }
  void keep(Viewer& viewer) {
    if (viewer.document() == nullptr || viewer.is_busy() || path_of(viewer) != restored_) return;
    std::string now = session_to_json(viewer);
    if (now == last_) return;
    last_ = std::move(now);
    if (const Status saved = save_session(settings_, viewer); !saved.ok()) viewer.fail(saved.error());
  }

 private:
  std::string path_of(const Viewer& viewer) const { return session_path(settings_, viewer.document()->files); }

  std::string settings_, restored_, last_;
};

// Pictures and scripts: what fails ends the program, for nobody is there to dismiss a message.
Status run_unattended(const Options& options, RenderTarget& target, Ui& ui) {
  settle(target, ui);
  if (!options.files.empty() && ui.viewer->document() == nullptr) {
    return ui.viewer->last_error.value_or(Error{ErrorCode::io, "nothing could be opened", {}, {}});
  }
  if (!options.state.empty()) {
    PX_TRY(apply_state(*ui.viewer, options.state));
    settle(target, ui);
  }
  if (!options.script.empty()) {
    const std::string script = PX_TRY(read_file(options.script));
    PX_TRY(run_script(script, options.script, target, ui));
  }
  if (!options.shot.empty()) PX_TRY(write_png(options.shot, target.picture()));
  return {};
}

// Writes the state of the viewer and the rectangles of its widgets. A program that drives the window may give a FIFO:
// each state waits there until it is read.
void write_state(const std::string& path, Ui& ui) {
  std::vector<NamedRectangle> locations;
  for (const auto& [name, widget] : ui.widgets) locations.push_back({name, widget.middle().x, widget.middle().y});
  const Status written = write_file(path, view_to_json(*ui.viewer, locations));
  if (!written.ok()) ui.viewer->fail(written.error());
}

Status run_attended(const Options& options, Ui& ui, Window& window) {
  const std::string path = settings_path();
  load_settings(path, ui);
  Viewer& viewer = *ui.viewer;
  ViewKeeper views(path);
  // At once: whatever ends the program, recent files stay.
  viewer.opened = [&](std::span<const std::string> files) {
    add_recent(viewer, files);
    if (const Status saved = save_settings(path, ui); !saved.ok()) viewer.fail(saved.error());
    views.restore(viewer);
  };
  DesktopFileChooser chooser(ui);
  bool is_state_due = !options.state.empty();
  const auto each_frame = [&] {
    viewer.poll();
    chooser.poll();
    if (!is_state_due || viewer.is_busy()) return;
    is_state_due = false;
    if (const Status applied = apply_state(viewer, options.state); !applied.ok()) viewer.fail(applied.error());
  };
  const auto settled = [&] {
    views.keep(viewer);
    if (!options.state_out.empty()) write_state(options.state_out, ui);
  };
  window.loop(ui, {each_frame, [&](std::vector<std::string> files) { viewer.open(std::move(files)); }, settled});
  return save_settings(path, ui);
}

// Names the inputs to the scope of the program, and checks the outputs before anything is drawn.
Status admit_files(const Options& options) {
  for (const std::string& file : options.files) input_files::note(file);
  input_files::note(options.script);
  if (!options.state.starts_with('{')) input_files::note(options.state);
  for (const std::string& file : {options.shot, options.state_out}) PX_TRY(admit_output(file));
  return {};
}

void report(const Error& error) { std::fprintf(stderr, "parallax-gui: %s\n", one_safe_line(error.message).c_str()); }

void report_end(int /*signal*/, const SignalCleanup& left) {
  if (!left.lost_file.empty()) report(lost_file_error(left));
}

Result<int> run(const std::vector<std::string>& arguments) {
  Options options = PX_TRY(parse(arguments));
  if (options.help || options.version) {
    std::fputs(options.help ? kHelp : (build_description("parallax-gui") + "\n").c_str(), stdout);
    return 0;
  }
  options.files = files_to_open(options);
  const input_files::Scope scope(options.force);
  PX_TRY(admit_files(options));
  Viewer viewer(make_executor);
  viewer.may_replace = options.force;
  viewer.version = PARALLAX_VERSION;
  Ui ui;
  ui.viewer = &viewer;
  ui.extra_letters.find = system_font_for;
  const bool unattended =
      !options.shot.empty() || !options.script.empty() || (!options.state_out.empty() && !options.window);
  std::unique_ptr<RenderTarget> target;
  Window* window = nullptr;
  if (unattended && !options.window) {
    target = PX_TRY(make_offscreen_target(options.target, ui));
  } else {
    auto made = PX_TRY(make_window(options.target, ui));
    window = made.get();
    target = std::move(made);
  }
  if (!options.files.empty()) viewer.open(options.files);
  PX_TRY(unattended ? run_unattended(options, *target, ui) : run_attended(options, ui, *window));
  if (unattended && !options.state_out.empty()) PX_TRY(write_file(options.state_out, view_to_json(viewer)));
  return 0;
}

}  // namespace
}  // namespace parallax::gui

int main(int argc, char** argv) {
  parallax::start_program(parallax::gui::report_end, parallax::gui::report);
  ::signal(SIGPIPE, SIG_IGN);  // whoever reads the states of a window may end before it
  const auto result = parallax::gui::run({argv + 1, argv + argc});
  if (result.ok()) return *result;
  parallax::gui::report(result.error());
  return parallax::exit_code(result.error().code);
}
