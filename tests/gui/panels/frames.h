// SPDX-License-Identifier: Apache-2.0
// Frames: windows drawn into ImGui's lists without OpenGL; widgets are pressed by name.
#pragma once

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "gui/panels/panels.h"
#include "inspector/executors/make_executor.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax::gui {

class Frames : public testing::Test {
 protected:
  Frames() : viewer_(make_executor) {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {1280, 720};
    io.DeltaTime = 1.0F / 60;
    io.MousePos = {-1, -1};
    ui_.viewer = &viewer_;
    ui_.fonts = bake_fonts(1);
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
  ~Frames() override { ImGui::DestroyContext(); }

  void open(const view_test::Dumps& dumps) {
    viewer_.open({dumps.a, dumps.b});
    viewer_.wait_idle();
    frames(3);
  }
  void frames(int count) {
    for (int i = 0; i < count || !ui_.input.empty(); ++i) {
      begin_frame(ui_);
      draw_frame(ui_);
      ImGui::Render();
    }
  }
  bool click(const std::string& name, int times = 1) {
    frames(1);
    const auto found = ui_.widgets.find(name);
    if (found == ui_.widgets.end()) return false;
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = found->second.middle();
    frames(2);
    for (int i = 0; i < times; ++i) {
      io.MouseDown[0] = true;
      frames(2);
      io.MouseDown[0] = false;
      frames(2);
    }
    io.MousePos = {-1, -1};
    frames(2);
    return true;
  }
  bool drag(const std::string& name, float from, float to) {
    frames(1);
    const auto found = ui_.widgets.find(name);
    if (found == ui_.widgets.end()) return false;
    const Widget widget = found->second;
    ImGuiIO& io = ImGui::GetIO();
    const auto at = [&](float share) {
      return ImVec2{widget.least.x + (widget.greatest.x - widget.least.x) * share, widget.middle().y};
    };
    for (const auto& [share, is_down] : {std::pair{from, false}, {from, true}, {to, true}, {to, false}}) {
      io.MousePos = at(share);
      io.MouseDown[0] = is_down;
      frames(2);
    }
    io.MousePos = {-1, -1};
    frames(2);
    return true;
  }
  void press(const std::string& chord) {
    ui_.input.push_back({chord, ""});
    frames(2);
  }
  void type(const std::string& text) {
    ui_.input.push_back({"", text});
    frames(3);
  }
  std::string path() const {
    return viewer_.row() < 0 ? "" : viewer_.document()->rows[static_cast<size_t>(viewer_.row())].path;
  }

  Viewer viewer_;
  Ui ui_;
};

}  // namespace parallax::gui
