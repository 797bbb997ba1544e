// SPDX-License-Identifier: Apache-2.0
// The verbs of scripts.
#include "gui/app/script.h"

#include <cstdlib>

#include <fmt/format.h>

#include "gui/app/picture_export.h"
#include "gui/app/png_file.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/text.h"
#include "inspector/exec/executor_names.h"

namespace parallax::gui {
namespace {

constexpr int kSettleFrames = 3;  // as many as ImGui needs for new windows and their scroll bars

class ScriptRunner {
 public:
  ScriptRunner(RenderTarget& target, Ui& ui) : target_(target), ui_(ui) {}

  Status run_line(std::string_view line) {
    const size_t blank = line.find(' ');
    const std::string verb(line.substr(0, blank));
    const std::string rest(blank == std::string_view::npos ? "" : line.substr(blank + 1));
    if (verb.empty() || verb[0] == '#') return {};
    for (const Verb& known : kVerbs) {
      if (verb == known.name) return (this->*known.run)(rest);
    }
    return usage_error(fmt::format("there is no script command '{}'", verb));
  }

 private:
  struct Verb {
    const char* name;
    Status (ScriptRunner::*run)(const std::string&);
  };
  static const Verb kVerbs[16];

  static std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> result;
    for (std::string_view word : split(text, ' ')) {
      if (!word.empty()) result.emplace_back(word);
    }
    return result;
  }

  void frames(int count = kSettleFrames) {
    for (int i = 0; i < count || !ui_.input.empty(); ++i) target_.frame(ui_, mouse_);
  }

  Status open(const std::string& rest) {
    ui_.viewer->open(words(rest));
    return wait("");
  }
  Status run(const std::string& rest) {
    const auto parts = words(rest);
    RunForm form;
    if (parts.empty()) return usage_error("run needs a model");
    form.model = parts[0];
    if (parts.size() > 1) {
      const auto names = split_executors(parts[1]);
      form.executor_a = names.front();
      form.executor_b = names.back();
    }
    PX_TRY(ui_.viewer->run(form));
    return wait("");
  }
  Status wait(const std::string&) {
    settle(target_, ui_);
    return {};
  }
  Status select(const std::string& rest) {
    if (!ui_.viewer->select_path(rest))
      return usage_error(fmt::format("there is no value or node '{}'; it must be a path of the document", rest));
    frames();
    return {};
  }
  Status key(const std::string& rest) {
    if (command_for_key(rest) == nullptr)
      return usage_error(fmt::format("no command has the key '{}' (they are written as in 'Shift+Slash')", rest));
    ui_.input.push_back({rest, ""});
    frames();
    return {};
  }
  Status click_times(const std::string& name, int times) {
    frames(1);
    const auto found = ui_.widgets.find(name);
    if (found == ui_.widgets.end())
      return usage_error(
          fmt::format("no widget '{}' is on the screen; widgets go by the names that --state-out lists", name));
    mouse_ = {true, found->second.middle(), false};
    frames(2);
    for (int i = 0; i < times; ++i) {
      mouse_.is_down = true;
      frames(2);
      mouse_.is_down = false;
      frames(2);
    }
    mouse_.is_on = false;
    frames();
    return {};
  }
  Status click(const std::string& rest) { return click_times(rest, 1); }
  Status double_click(const std::string& rest) { return click_times(rest, 2); }
  Status type(const std::string& rest) {
    ui_.input.push_back({"", rest});
    frames();
    return {};
  }
  Status command(const std::string& rest) {
    const Command* found = find_command(rest);
    if (found == nullptr) return usage_error(fmt::format("there is no command '{}'", rest));
    if (!found->run(*ui_.viewer))
      return usage_error(fmt::format("'{}' had nothing to do; what it acts on must be selected", rest));
    frames();
    return {};
  }
  Status state(const std::string& rest) {
    PX_TRY(apply_view(*ui_.viewer, rest));
    frames();
    return {};
  }
  Status resize(const std::string& rest) {
    const auto parts = words(rest);
    const int width = parts.size() == 2 ? std::atoi(parts[0].c_str()) : 0,
              height = parts.size() == 2 ? std::atoi(parts[1].c_str()) : 0;
    if (width < 64 || height < 64 || width > 8192 || height > 8192)
      return usage_error("resize needs a width and a height from 64 to 8192");
    target_.resize(width, height);
    frames();
    return {};
  }
  Status shot(const std::string& rest) {
    settle(target_, ui_);
    return write_png(rest, target_.picture());
  }
  Status export_graph(const std::string& rest) {
    PX_TRY(ui_.viewer->export_to(rest, subject_of(rest)));
    frames();
    save_wanted_picture(target_, ui_);
    return {};
  }
  // From one share of a widget's width to another, along its middle.
  Status drag(const std::string& rest) {
    const auto parts = words(rest);
    frames(1);
    const auto found = parts.size() == 3 ? ui_.widgets.find(parts[0]) : ui_.widgets.end();
    if (found == ui_.widgets.end()) return usage_error("drag needs a widget on the screen and two shares of its width");
    const Widget widget = found->second;
    const auto at = [&](const std::string& share) {
      return ImVec2{widget.least.x + (widget.greatest.x - widget.least.x) * std::strtof(share.c_str(), nullptr),
                    widget.middle().y};
    };
    for (const auto& [share, is_down] :
         {std::pair{parts[1], false}, {parts[1], true}, {parts[2], true}, {parts[2], false}}) {
      mouse_ = {true, at(share), is_down};
      frames(2);
    }
    mouse_.is_on = false;
    frames();
    return {};
  }
  Status state_out(const std::string& rest) { return write_file(rest, view_to_json(*ui_.viewer)); }
  Status expect(const std::string& rest) {
    const size_t blank = rest.find(' ');
    if (blank == std::string::npos) return usage_error("expect needs a pointer and a value");
    return expect_view(*ui_.viewer, rest.substr(0, blank), rest.substr(blank + 1));
  }

  RenderTarget& target_;
  Ui& ui_;
  ScriptedMouse mouse_;
};

const ScriptRunner::Verb ScriptRunner::kVerbs[16] = {{"open", &ScriptRunner::open},
                                                     {"run", &ScriptRunner::run},
                                                     {"wait-idle", &ScriptRunner::wait},
                                                     {"select", &ScriptRunner::select},
                                                     {"key", &ScriptRunner::key},
                                                     {"click", &ScriptRunner::click},
                                                     {"double-click", &ScriptRunner::double_click},
                                                     {"type", &ScriptRunner::type},
                                                     {"do", &ScriptRunner::command},
                                                     {"state", &ScriptRunner::state},
                                                     {"resize", &ScriptRunner::resize},
                                                     {"shot", &ScriptRunner::shot},
                                                     {"state-out", &ScriptRunner::state_out},
                                                     {"export", &ScriptRunner::export_graph},
                                                     {"drag", &ScriptRunner::drag},
                                                     {"expect", &ScriptRunner::expect}};

}  // namespace

void settle(RenderTarget& target, Ui& ui) {
  for (int i = 0; i < kSettleFrames; ++i) target.frame(ui, {});
  ui.viewer->wait_idle();
  do {
    for (int i = 0; i < kSettleFrames; ++i) target.frame(ui, {});
  } while (ui.tensor.wait());
}

Status run_script(const std::string& text, const std::string& name, RenderTarget& target, Ui& ui) {
  ScriptRunner runner(target, ui);
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    PX_TRY_CONTEXT(fmt::format("{}:{}", name, number), runner.run_line(line));
  }
  return {};
}

}  // namespace parallax::gui
