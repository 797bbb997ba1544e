// SPDX-License-Identifier: Apache-2.0
// The target that frames are rendered to. A window for people, or a picture in memory for scripts and tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/panels/ui.h"
#include "inspector/base/result.h"

namespace parallax::gui {

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgba;  // rows from the top
};

// The mouse of a UI script, in place of the real one.
struct ScriptedMouse {
  bool is_on = false;
  ImVec2 location{-1, -1};
  bool is_down = false;
};

class RenderTarget {
 public:
  virtual ~RenderTarget() = default;
  // Draws one frame of `ui`. `mouse` may be off.
  virtual void frame(Ui& ui, const ScriptedMouse& mouse) = 0;
  virtual Picture picture() = 0;  // of the last frame
  virtual void resize(int width, int height) = 0;
};

struct RenderTargetOptions {
  int width = 1280, height = 720;
  float scale = 0;                     // 0: as the screen asks for
  float most_pictures_per_second = 0;  // of a window; 0: as many as the screen shows
  bool has_size = false;               // somebody wants just this width and height; else a window grows with its text
};

// Without a display: EGL without a surface. Errors: unsupported, saying what is missing; out_of_memory.
Result<std::unique_ptr<RenderTarget>> make_offscreen_target(const RenderTargetOptions& options, Ui& ui);

// A window. Errors: unsupported (no display), out_of_memory.
class Window : public RenderTarget {
 public:
  struct Calls {
    std::function<void()> each_frame;                       // before a frame is drawn
    std::function<void(std::vector<std::string>)> dropped;  // with files
    std::function<void()> settled;                          // nothing moves any more, until something happens
  };
  virtual void loop(Ui& ui, const Calls& calls) = 0;  // until the window is closed
};
Result<std::unique_ptr<Window>> make_window(const RenderTargetOptions& options, Ui& ui);

// For both: textures of the current GL context.
ImTextureID make_gl_texture(ImTextureID old, int width, int height, const uint32_t* pixels);
// The picture of the framebuffer that is bound.
Picture read_gl_picture(int width, int height);
// The picture of the last frame, drawn once more: the content of a window after it was shown is undefined.
Picture draw_gl_picture(int width, int height);

}  // namespace parallax::gui
