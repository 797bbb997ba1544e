// SPDX-License-Identifier: Apache-2.0
// The render target without a display: EGL's surfaceless platform and a framebuffer object.
#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/format.h>
#include <imgui.h>

#include "gui/app/address_space.h"
#include "gui/app/render_target.h"
#include "gui/panels/panels.h"

namespace parallax::gui {
namespace {

class Offscreen final : public RenderTarget {
 public:
  Offscreen(const RenderTargetOptions& options, EGLDisplay display, EGLContext context)
      : width_(options.width), height_(options.height), display_(display), context_(context) {
    glGenFramebuffers(1, &framebuffer_);
    glGenRenderbuffers(1, &color_);
    resize(width_, height_);
  }
  ~Offscreen() override {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui::DestroyContext();
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    eglDestroyContext(display_, context_);
    eglTerminate(display_);
  }

  void resize(int width, int height) override {
    width_ = width;
    height_ = height;
    glBindRenderbuffer(GL_RENDERBUFFER, color_);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, color_);
  }

  void frame(Ui& ui, const ScriptedMouse& mouse) override {
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(width_), static_cast<float>(height_)};
    io.DeltaTime = 1.0F / 60;
    io.MousePos = mouse.is_on ? mouse.location : ImVec2{-1, -1};
    io.MouseDown[0] = mouse.is_down;
    if (size_fonts(ui)) {
      ImGui_ImplOpenGL3_DestroyFontsTexture();
      ImGui_ImplOpenGL3_CreateFontsTexture();
    }
    ImGui_ImplOpenGL3_NewFrame();
    begin_frame(ui);
    draw_frame(ui);
    ImGui::Render();
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
    glViewport(0, 0, width_, height_);
    glClearColor(0, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  }

  Picture picture() override { return read_gl_picture(width_, height_); }

 private:
  int width_, height_;
  EGLDisplay display_;
  EGLContext context_;
  GLuint framebuffer_ = 0, color_ = 0;
};

Error egl_error(const char* what) {
  return unsupported(
      fmt::format("cannot draw without a display: {} failed (EGL error {:#x}); it needs libegl1 and a Mesa driver",
                  what, eglGetError()));
}

}  // namespace

Result<std::unique_ptr<RenderTarget>> make_offscreen_target(const RenderTargetOptions& options, Ui& ui) {
  PX_TRY(check_address_space(options.width, options.height));
  EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  if (display == EGL_NO_DISPLAY) return egl_error("eglGetPlatformDisplay");
  if (eglInitialize(display, nullptr, nullptr) == EGL_FALSE) return egl_error("eglInitialize");
  eglBindAPI(EGL_OPENGL_API);
  constexpr EGLint kConfig[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  if (eglChooseConfig(display, kConfig, &config, 1, &count) == EGL_FALSE || count == 0)
    return egl_error("eglChooseConfig");
  constexpr EGLint kContext[] = {
      EGL_CONTEXT_MAJOR_VERSION,           3,       EGL_CONTEXT_MINOR_VERSION, 3, EGL_CONTEXT_OPENGL_PROFILE_MASK,
      EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE};
  EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, kContext);
  if (context == EGL_NO_CONTEXT) return egl_error("eglCreateContext");
  if (eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) == EGL_FALSE) return egl_error("eglMakeCurrent");
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  ui.scale = ui.screen_scale = options.scale > 0 ? options.scale : 1;
  ui.fonts = bake_fonts(ui.scale);
  if (!ImGui_ImplOpenGL3_Init("#version 330"))
    return unsupported("OpenGL 3.3 is not there; a driver that has it is needed (Mesa: libegl1, libgl1-mesa-dri)");
  ui.make_texture = make_gl_texture;
  return std::unique_ptr<RenderTarget>(std::make_unique<Offscreen>(options, display, context));
}

}  // namespace parallax::gui
