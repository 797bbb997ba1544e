// SPDX-License-Identifier: Apache-2.0
// Screen: two dumps, compared and drawn in memory by software OpenGL.
#pragma once

#include <cstdlib>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "gui/app/script.h"
#include "inspector/executors/make_executor.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax::gui {

struct Screen {
  Viewer viewer{make_executor};
  Ui ui;
  std::unique_ptr<Stage> stage;

  explicit Screen(const view_test::Dumps& dumps, RenderTargetOptions options = {}) {
    ::setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);  // the same pixels whatever graphics card there is
    ui.viewer = &viewer;
    auto made = make_offscreen_target(options, ui);
    if (!made.ok()) return;
    stage = std::move(made).take();
    viewer.open({dumps.a, dumps.b});
    settle(*stage, ui);
  }
  Picture shot() {
    settle(*stage, ui);
    return stage->picture();
  }
};

#define PX_NEEDS_EGL(screen) \
  if ((screen).stage == nullptr) GTEST_SKIP() << "no EGL driver here"

}  // namespace parallax::gui
