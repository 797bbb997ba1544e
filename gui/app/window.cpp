// SPDX-License-Identifier: Apache-2.0
// The window: GLFW and OpenGL 3.3. Sleeps until something happens.
#define GLFW_INCLUDE_NONE
#include <algorithm>
#include <array>
#include <atomic>
#include <cfloat>
#include <chrono>
#include <deque>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

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
#include "inspector/base/hash.h"

namespace parallax::gui {
namespace {

constexpr int kFramesAfterEvent =
    6;  // ImGui settles within so many: a text field has the keyboard four frames after a key

// The events that the callbacks leave for the loop, which takes them one after the other: Dear ImGui itself polls keys
// and buttons once a frame and misses what is pressed and released in between.
struct Events {
  std::deque<InputEvent> input;
  std::vector<std::string> dropped;
  int frames_left = kFramesAfterEvent;
  bool is_damaged = true;  // the screen has lost the picture, or a texture of it is another one
  int pressed_key = GLFW_KEY_UNKNOWN, modifiers = 0;  // of the last press, for the character that follows it
};

Events& events_of(GLFWwindow* window) { return *static_cast<Events*>(glfwGetWindowUserPointer(window)); }

void note_event(GLFWwindow* window) { events_of(window).frames_left = kFramesAfterEvent; }

void enqueue(GLFWwindow* window, InputEvent event) {
  note_event(window);
  events_of(window).input.push_back(std::move(event));
}

InputEvent held_modifiers(GLFWwindow* window) {
  const auto holds = [&](int left, int right) {
    return glfwGetKey(window, left) == GLFW_PRESS || glfwGetKey(window, right) == GLFW_PRESS;
  };
  return {.kind = InputEvent::Kind::modifiers,
          .has_ctrl = holds(GLFW_KEY_LEFT_CONTROL, GLFW_KEY_RIGHT_CONTROL),
          .has_shift = holds(GLFW_KEY_LEFT_SHIFT, GLFW_KEY_RIGHT_SHIFT),
          .has_alt = holds(GLFW_KEY_LEFT_ALT, GLFW_KEY_RIGHT_ALT)};
}

void take_key(GLFWwindow* window, int key, int scancode, int action, int modifiers) {
  if (key >= GLFW_KEY_LEFT_SHIFT && key <= GLFW_KEY_RIGHT_SUPER) return enqueue(window, held_modifiers(window));
  note_event(window);
  if (action == GLFW_RELEASE) return;
  events_of(window).pressed_key = key;
  events_of(window).modifiers = modifiers;
  const std::string chord = chord_of(key, modifiers, glfwGetKeyName(key, scancode));
  if (!chord.empty()) enqueue(window, {.chord = chord});
}

// A character goes with the press that brought it, which comes just before; GLFW gives none for Ctrl and Alt. Without a
// press it comes from an input method.
void take_character(GLFWwindow* window, unsigned int code) {
  Events& events = events_of(window);
  const int key = std::exchange(events.pressed_key, GLFW_KEY_UNKNOWN);
  if (key == GLFW_KEY_SPACE && !events.input.empty() && events.input.back().text.empty()) {
    events.input.back().text = " ";  // its chord is there
    return;
  }
  const bool is_typed = key != GLFW_KEY_UNKNOWN;
  enqueue(window, {.chord = is_typed ? chord_of_character(code, key, events.modifiers) : "", .text = utf8_of(code)});
}

void set_callbacks(GLFWwindow* window) {
  glfwSetKeyCallback(window, take_key);
  glfwSetCharCallback(window, take_character);
  glfwSetMouseButtonCallback(window, [](GLFWwindow* w, int button, int action, int) {
    if (button < ImGuiMouseButton_COUNT)
      enqueue(w, {.kind = InputEvent::Kind::button, .button = button, .is_down = action == GLFW_PRESS});
  });
  glfwSetScrollCallback(window, [](GLFWwindow* w, double x, double y) {
    enqueue(w, {.kind = InputEvent::Kind::wheel, .at = {static_cast<float>(x), static_cast<float>(y)}});
  });
  glfwSetCursorPosCallback(window, [](GLFWwindow* w, double x, double y) {
    enqueue(w, {.kind = InputEvent::Kind::move, .at = {static_cast<float>(x), static_cast<float>(y)}});
  });
  glfwSetCursorEnterCallback(window, [](GLFWwindow* w, int is_inside) {
    if (is_inside == GLFW_FALSE) enqueue(w, {.kind = InputEvent::Kind::move, .at = {-FLT_MAX, -FLT_MAX}});
  });
  glfwSetWindowSizeCallback(window, [](GLFWwindow* w, int, int) { note_event(w); });
  glfwSetWindowRefreshCallback(window, [](GLFWwindow* w) {
    note_event(w);
    events_of(w).is_damaged = true;
  });
  glfwSetDropCallback(window, [](GLFWwindow* w, int count, const char** paths) {
    note_event(w);
    for (int i = 0; i < count; ++i) events_of(w).dropped.emplace_back(paths[i]);
  });
}

class GlfwWindow final : public Window {
 public:
  GlfwWindow(GLFWwindow* window, float most_pictures_per_second)
      : window_(window), least_seconds_(most_pictures_per_second > 0 ? 1 / most_pictures_per_second : 0) {
    glfwSetWindowUserPointer(window, &events_);
    set_callbacks(window);
    ImGui_ImplGlfw_InitForOpenGL(window, false);  // its callbacks would poll
  }
  ~GlfwWindow() override {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImGui::DestroyContext();
    glfwDestroyWindow(window_);
    glfwTerminate();
  }

  void resize(int width, int height) override { glfwSetWindowSize(window_, width, height); }

  // Events that do not fit into one frame get further frames, which are not drawn. Where drawing is slow (software
  // OpenGL, a remote screen), the frames in which ImGui settles are not drawn either: typed text is not delayed, and
  // the first picture after a key shows its effect.
  void frame(Ui& ui, const ScriptedMouse& mouse) override {
    constexpr double kLongestWithoutPicture = 0.25, kSlowPicture = 0.05;
    const double begun = glfwGetTime();
    std::ranges::move(events_.input, std::back_inserter(ui.input));
    events_.input.clear();
    if (size_fonts(ui)) {
      events_.is_damaged = true;
      ImGui_ImplOpenGL3_DestroyFontsTexture();
      ImGui_ImplOpenGL3_CreateFontsTexture();
    }
    ImGui_ImplOpenGL3_NewFrame();  // makes the texture of the fonts
    const auto must_go_on = [&] {
      return !ui.input.empty() || (picture_seconds_ > kSlowPicture && --events_.frames_left > 0);
    };
    do {
      build_frame(ui, mouse);
    } while (must_go_on() && glfwGetTime() - begun < kLongestWithoutPicture);
    const Document* document = ui.viewer->document();
    const std::string title = document == nullptr ? "Parallax" : document->title() + " - Parallax";
    if (std::exchange(title_, title) != title) glfwSetWindowTitle(window_, title.c_str());
    if (is_new_picture()) draw_picture(begun);
    glfwPollEvents();
    seconds_between_polls_ = glfwGetTime() - begun;
  }

  Picture picture() override { return draw_gl_picture(width_, height_); }

  void loop(Ui& ui, const Calls& calls) override {
    ui.viewer->wake = [woken = woken_] {
      *woken = true;
      glfwPostEmptyEvent();
    };
    while (glfwWindowShouldClose(window_) == 0 && !ui.viewer->wants_quit) {
      if (events_.frames_left <= 0 && ui.input.empty() && !is_woken()) {
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
    }
  }

 private:
  void build_frame(Ui& ui, const ScriptedMouse& mouse) {
    ImGuiIO& io = ImGui::GetIO();
    const ImVec2 at = io.MousePos;  // as far as events have been taken: ImGui's backend asks the screen
    std::array<bool, IM_ARRAYSIZE(io.MouseDown)> is_down{};
    std::ranges::copy(io.MouseDown, is_down.begin());
    ImGui_ImplGlfw_NewFrame();
    io.MousePos = mouse.is_on ? mouse.location : at;
    std::ranges::copy(is_down, io.MouseDown);
    if (mouse.is_on) io.MouseDown[0] = mouse.is_down;
    // Two clicks that came this long after one another as frames see them may have been nearer in fact.
    constexpr double kDoubleClickSeconds = 0.3, kLongestFrame = 0.7;
    io.MouseDoubleClickTime = static_cast<float>(kDoubleClickSeconds + std::min(seconds_between_polls_, kLongestFrame));
    begin_frame(ui);
    draw_frame(ui);
    ImGui::Render();
    if (!ui.viewer->clipboard.empty())  // the next key may paste it
      glfwSetClipboardString(window_, std::exchange(ui.viewer->clipboard, {}).c_str());
  }

  // A picture that would be the one on the screen is not drawn again.
  bool is_new_picture() {
    int width = 0, height = 0;
    glfwGetFramebufferSize(window_, &width, &height);
    std::vector<Hash128> lists;
    const ImDrawData& data = *ImGui::GetDrawData();
    for (int i = 0; i < data.CmdListsCount; ++i) {
      const ImDrawList& list = *data.CmdLists[i];
      lists.push_back(hash128(list.CmdBuffer.Data, static_cast<size_t>(list.CmdBuffer.size_in_bytes())));
      lists.push_back(hash128(list.VtxBuffer.Data, static_cast<size_t>(list.VtxBuffer.size_in_bytes())));
      lists.push_back(hash128(list.IdxBuffer.Data, static_cast<size_t>(list.IdxBuffer.size_in_bytes())));
    }
    const bool is_same_size = width == width_ && height == height_;
    const bool is_same = drawn_ == lists && is_same_size;
    drawn_ = std::move(lists);
    width_ = width;
    height_ = height;
    return std::exchange(events_.is_damaged, false) || !is_same;
  }

  void draw_picture(double frame_begun) {
    const double begun = glfwGetTime();
    glViewport(0, 0, width_, height_);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glfwSwapBuffers(window_);
    if (const double left = least_seconds_ - (glfwGetTime() - frame_begun); left > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(left));
    picture_seconds_ = glfwGetTime() - begun;
  }

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

  // True where work has ended since the last call. The posted empty event is not enough: glfwPollEvents() in frame()
  // may consume it.
  bool is_woken() { return woken_->exchange(false); }

  GLFWwindow* window_;
  Events events_;
  std::string title_;
  int width_ = 0, height_ = 0;
  std::shared_ptr<std::atomic<bool>> woken_ = std::make_shared<std::atomic<bool>>(false);
  double least_seconds_;  // of a picture
  double seconds_between_polls_ = 0, picture_seconds_ = 0;
  std::vector<Hash128> drawn_;  // what the picture on the screen was made of
};

// Letters grow with the scale, and the window with them, so that it shows as much text; at most 90 % of the screen.
void grow(GLFWwindow* window, const RenderTargetOptions& options, float scale) {
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  if (monitor == nullptr || scale <= 1) return;
  int x = 0, y = 0, width = 0, height = 0;
  glfwGetMonitorWorkarea(monitor, &x, &y, &width, &height);
  const auto grown = [&](int length, int room) {
    return std::max(length, std::min(static_cast<int>(static_cast<float>(length) * scale), room * 9 / 10));
  };
  glfwSetWindowSize(window, grown(options.width, width), grown(options.height, height));
}

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
  ui.scale = ui.screen_scale = options.scale > 0 ? options.scale : std::max(1.0F, scale_x);
  if (!options.has_size) grow(window, options, ui.scale);
  ui.fonts = bake_fonts(ui.scale);
  ui.make_texture = [window](ImTextureID old, int width, int height, const uint32_t* pixels) {
    events_of(window).is_damaged = true;
    return make_gl_texture(old, width, height, pixels);
  };
  auto target = std::make_unique<GlfwWindow>(window, options.most_pictures_per_second);
  ImGui_ImplOpenGL3_Init("#version 330");
  return std::unique_ptr<Window>(std::move(target));
}

}  // namespace parallax::gui
