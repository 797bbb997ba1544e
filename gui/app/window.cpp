// SPDX-License-Identifier: Apache-2.0
// The window: GLFW and OpenGL 3.3. Sleeps until something happens.
#define GLFW_INCLUDE_NONE
#include <algorithm>
#include <iterator>

#include <GL/gl.h>
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include "gui/app/address_space.h"
#include "gui/app/keys.h"
#include "gui/app/picture_export.h"
#include "gui/app/render_target.h"
#include "gui/panels/panels.h"

namespace parallax::gui {
namespace {

constexpr int kFramesAfterEvent =
    6;  // ImGui settles within so many: a text field has the keyboard four frames after a key

// The events that the callbacks leave for the loop. Keys come from here and not from ImGui, which polls once a frame
// and misses keys that are pressed and released in between.
struct Events {
  std::vector<Typed> typed;
  std::vector<std::string> dropped;
  int frames_left = kFramesAfterEvent;
  std::string failure;
};

Events& events_of(GLFWwindow* window) { return *static_cast<Events*>(glfwGetWindowUserPointer(window)); }

void note_event(GLFWwindow* window) { events_of(window).frames_left = kFramesAfterEvent; }

void set_callbacks(GLFWwindow* window) {
  glfwSetKeyCallback(window, [](GLFWwindow* w, int key, int, int action, int modifiers) {
    note_event(w);
    if (action == GLFW_RELEASE) return;
    events_of(w).typed.push_back({chord_of(key, modifiers), ""});
  });
  glfwSetMouseButtonCallback(window, [](GLFWwindow* w, int, int, int) { note_event(w); });
  glfwSetScrollCallback(window, [](GLFWwindow* w, double, double) { note_event(w); });
  glfwSetCursorPosCallback(window, [](GLFWwindow* w, double, double) { note_event(w); });
  glfwSetWindowSizeCallback(window, [](GLFWwindow* w, int, int) { note_event(w); });
  glfwSetWindowRefreshCallback(window, [](GLFWwindow* w) { note_event(w); });
  glfwSetDropCallback(window, [](GLFWwindow* w, int count, const char** paths) {
    note_event(w);
    for (int i = 0; i < count; ++i) events_of(w).dropped.emplace_back(paths[i]);
  });
}

// Letters go with the press that brought them, which comes just before; GLFW gives none for Ctrl and Alt.
void take_letters(GLFWwindow* window, unsigned int code) {
  note_event(window);
  std::vector<Typed>& typed = events_of(window).typed;
  if (typed.empty() || !typed.back().text.empty()) typed.emplace_back();
  typed.back().text += utf8_of(code);
}

class GlfwWindow final : public Window {
 public:
  explicit GlfwWindow(GLFWwindow* window) : window_(window) {
    glfwSetWindowUserPointer(window, &events_);
    set_callbacks(window);  // before ImGui's own, which call these
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    glfwSetCharCallback(window, take_letters);  // instead of ImGui's: a text field gets them when it is its turn
  }
  ~GlfwWindow() override {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImGui::DestroyContext();
    glfwDestroyWindow(window_);
    glfwTerminate();
  }

  void resize(int width, int height) override { glfwSetWindowSize(window_, width, height); }

  void frame(Ui& ui, const ScriptedMouse& mouse) override {
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    if (mouse.is_on) {
      ImGui::GetIO().MousePos = mouse.location;
      ImGui::GetIO().MouseDown[0] = mouse.is_down;
    }
    std::ranges::move(events_.typed, std::back_inserter(ui.typed));
    events_.typed.clear();
    ImGui::NewFrame();
    draw_frame(ui);
    ImGui::Render();
    glfwGetFramebufferSize(window_, &width_, &height_);
    glViewport(0, 0, width_, height_);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glfwSwapBuffers(window_);
    glfwPollEvents();
  }

  Picture picture() override { return draw_gl_picture(width_, height_); }

  void loop(Ui& ui, const Calls& calls) override {
    ui.viewer->wake = [] { glfwPostEmptyEvent(); };
    while (glfwWindowShouldClose(window_) == 0 && !ui.viewer->wants_quit) {
      if (events_.frames_left <= 0 && ui.typed.empty()) {
        if (!is_busy(ui)) calls.settled();
        wait(ui);
      }
      --events_.frames_left;
      if (!events_.dropped.empty()) calls.dropped(std::exchange(events_.dropped, {}));
      calls.each_frame();
      frame(ui, {});
      // Twice: the dialog that asked for the picture is gone from the second frame.
      if (!ui.viewer->wanted_png.empty()) {
        frame(ui, {});
        save_wanted_picture(*this, ui);
        events_.frames_left = kFramesAfterEvent;
      }
      if (!ui.viewer->clipboard.empty())
        glfwSetClipboardString(window_, std::exchange(ui.viewer->clipboard, {}).c_str());
    }
  }

 private:
  static bool is_busy(const Ui& ui) { return ui.viewer->is_busy() || ui.tensor.is_computing(); }

  void wait(const Ui& ui) {
    constexpr double kProgressSeconds = 0.1, kCaretSeconds = 0.4;
    if (is_busy(ui)) {
      glfwWaitEventsTimeout(kProgressSeconds);
    } else if (ImGui::GetIO().WantTextInput) {
      glfwWaitEventsTimeout(kCaretSeconds);
    } else {
      glfwWaitEvents();
    }
    events_.frames_left = std::max(events_.frames_left, 1);
  }

  GLFWwindow* window_;
  Events events_;
  int width_ = 0, height_ = 0;
};

}  // namespace

Result<std::unique_ptr<Window>> make_window(const RenderTargetOptions& options, Ui& ui) {
  PX_TRY(check_address_space(options.width, options.height));
  if (glfwInit() == GLFW_FALSE) {
    return unsupported("cannot open a window: there is no display (use --shot or --script to draw without one)");
  }
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  GLFWwindow* window = glfwCreateWindow(options.width, options.height, "Parallax", nullptr, nullptr);
  if (window == nullptr) {
    glfwTerminate();
    return unsupported("cannot open a window: OpenGL 3.3 is not there; a driver that has it is needed");
  }
  constexpr int kLeastWidth = 640, kLeastHeight = 400;  // below, panes have no room for words
  glfwSetWindowSizeLimits(window, std::min(kLeastWidth, options.width), std::min(kLeastHeight, options.height),
                          GLFW_DONT_CARE, GLFW_DONT_CARE);
  glfwMakeContextCurrent(window);
  glfwSwapInterval(1);
  float scale_x = 1, scale_y = 1;
  glfwGetWindowContentScale(window, &scale_x, &scale_y);
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  ui.scale = options.scale > 0 ? options.scale : std::max(1.0F, scale_x);
  ui.fonts = bake_fonts(ui.scale);
  ui.make_texture = make_gl_texture;
  auto target = std::make_unique<GlfwWindow>(window);
  ImGui_ImplOpenGL3_Init("#version 330");
  return std::unique_ptr<Window>(std::move(target));
}

}  // namespace parallax::gui
