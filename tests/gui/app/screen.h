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
  std::unique_ptr<RenderTarget> target;

  explicit Screen(const view_test::Dumps& dumps, RenderTargetOptions options = {}) {
    ::setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);  // the same pixels whatever graphics card there is
    ui.viewer = &viewer;
    auto made = make_offscreen_target(options, ui);
    if (!made.ok()) return;
    target = std::move(made).take();
    viewer.open({dumps.a, dumps.b});
    settle(*target, ui);
  }
  Picture shot() {
    settle(*target, ui);
    return target->picture();
  }
};

#define PX_NEEDS_EGL(screen) \
  if ((screen).target == nullptr) GTEST_SKIP() << "no EGL driver here"

}  // namespace parallax::gui
