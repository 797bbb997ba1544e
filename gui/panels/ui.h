// SPDX-License-Identifier: Apache-2.0
// Ui: what all windows share besides the Viewer: theme, fonts, textures, the register of named widgets, and the keys
// that have come in.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "gui/panels/background.h"
#include "gui/viewmodel/file_chooser.h"
#include "gui/viewmodel/viewer.h"

namespace parallax::gui {

struct Theme {
  ImU32 background, panel, raised, border, text, dim, accent, good, bad, node, frame, canvas, wire;
};
const Theme& theme_of(bool is_dark);

struct Fonts {
  // One face at rising sizes in pixels: zooming picks among them, for letters are sharp only at the size they were
  // made for.
  std::vector<ImFont*> canvas;
  ImFont* base = nullptr;
  ImFont* small = nullptr;
  ImFont* title = nullptr;
  ImFont* huge = nullptr;
  ImFont* mono = nullptr;
  // The largest that is not above `pixels`; null below the smallest.
  ImFont* at(float pixels) const;
};

// A font file of the system, and which of its faces.
struct FontFile {
  std::shared_ptr<const std::string> bytes;
  int face = 0;
};
using FindFont = std::function<std::optional<FontFile>(uint32_t letter)>;

// The letters that texts have needed and the embedded faces are not baked with, and the files that have them. Only
// those are loaded that are needed.
struct ExtraLetters {
  std::set<ImWchar> letters;
  std::vector<FontFile> files;
  std::vector<ImWchar> ranges;  // the letters as ImGui has them, which keeps a pointer to it
  FindFont find;                // empty: of the embedded faces only
};

// Bakes the embedded faces into the current context's atlas, with extra letters where there are any. `scale` is 1 on
// ordinary screens.
Fonts bake_fonts(float scale, ExtraLetters* extra = nullptr);

// Gives `ui` fonts of the size that its viewer asks for, with the letters that drawable_text() missed in the last
// frame; true when they are others, whose texture must be made anew.
struct Ui;
bool size_fonts(Ui& ui);

// A widget's rectangle in this frame; scripts and tests click it by name.
struct Widget {
  ImVec2 least, greatest;
  ImVec2 middle() const { return {(least.x + greatest.x) / 2, (least.y + greatest.y) / 2}; }
};

// Makes (or replaces, when `old` is not null) a texture of RGBA pixels. Without one, pictures are left out.
using MakeTexture = std::function<ImTextureID(ImTextureID old, int width, int height, const uint32_t* pixels)>;

// All that histogram and lists depend on.
struct FiguresKey {
  int64_t load = -1;           // of the value
  int64_t slice_version = -1;  // -1: all slices are counted, whichever is shown
  TensorMode mode = TensorMode::a;
  ElementFilter filter;
  bool flips_axis = false;
  bool operator==(const FiguresKey&) const = default;
};

// All that is computed from every element of the slice shown, or of the value, but for pictures.
struct SliceFigures {
  ValueRange whole;  // of all finite elements of the slice shown
  FiguresKey key;    // of what follows
  SliceHistogram histogram;
  std::vector<int64_t> worst, passing;
  int64_t passing_total = 0;
};

struct HeatPicture {
  ValueRange range;
  HeatImage image;
};

// The state that the tensor viewer keeps between frames. Pictures and figures are made again when their version is not
// the pane's; while that takes a thread, the pane says so.
struct TensorUi {
  struct Heat {
    TensorMode mode = TensorMode::a;
    bool is_dark = true;
    int64_t version = -1, range_version = -1;  // asked for
    HeatPicture shown;
    ImTextureID texture = nullptr;
    Background<HeatPicture> work;
  };
  std::array<Heat, 3> heats;  // A, B, and what is measured
  int64_t version = -1;       // of the figures asked for
  int64_t figures_version = -1;
  SliceFigures figures;
  Background<SliceFigures> figures_work;
  std::vector<ChannelRow> channels;
  Background<std::vector<ChannelRow>> channels_work;
  int channels_axis = -1;
  int64_t channels_version = -1;
  bool is_computing() const;
  bool wait();  // for the threads: the next frame shows what they made; false when there were none

  int page = 0;
  float brush_from = -1;  // share of the histogram's width where a drag began
  int dragged_handle = -1;
  float zoom = 0;        // pixels an element; 0: to be fitted
  ImVec2 stretch{1, 1};  // of elements, in the short direction of a long and thin slice
  ImVec2 cell() const { return {zoom * stretch.x, zoom * stretch.y}; }
  bool is_fitted = true;  // nobody has zoomed or dragged
  ImVec2 size{0, 0};      // of the pane it was fitted to
  ImVec2 origin{0, 0};
};

// One event of the keyboard or the mouse. A press brings its characters with it; characters alone come from input
// methods.
struct InputEvent {
  enum class Kind : uint8_t { press, move, button, wheel, modifiers };
  std::string chord = "";  // of a press: "Ctrl+F"
  std::string text = "";   // UTF-8
  Kind kind = Kind::press;
  ImVec2 at{0, 0};  // of a move; of a wheel its steps
  int button = 0;
  bool is_down = false;
  bool has_ctrl = false, has_shift = false, has_alt = false;  // held from now on
};

constexpr int kFramesToField = 10;  // until a text field that was asked for has the keyboard, at most

// The part of a dialog that has the keyboard, and the parts that Tab leads to.
struct DialogFocus {
  struct Part {
    std::string name;
    bool is_field;
  };
  std::vector<Part> order;
  std::string at;
  bool is_backdrop_clicked = false;
  bool is_due = false;         // the field at `at` takes the keyboard when it is drawn
  bool is_on_button = false;   // which Enter presses
  bool has_completed = false;  // Tab made more of a text and moves nothing
  std::string replaced;        // the field whose text is replaced when it is drawn
  std::optional<std::string> replacement;
};

// The file chooser.
struct ChooserUi {
  FileKind kind = FileKind::readable;
  std::string* target = nullptr;  // a field of the run dialog that wants a path; null: files are opened
  std::string title;              // of the field
  std::string listed;             // the text that the entries are of
  std::string problem;
  std::vector<FileEntry> entries;
  int at = -1;  // highlighted
  bool is_due = true;
};

// The desktop's own file chooser.
struct DesktopChooser {
  std::function<void(FileKind kind, const std::string& folder)> start;  // empty where the desktop has none
  bool is_open = false;
};

struct Ui {
  Viewer* viewer = nullptr;
  Fonts fonts;
  ExtraLetters extra_letters;
  float screen_scale = 1;  // that the screen asks for
  float scale = 1;         // with the size of the text
  MakeTexture make_texture;
  std::deque<InputEvent> input;      // not taken yet, oldest first
  InputEvent held;                   // the modifiers that are held, whatever the chord in the frame has
  bool has_chord_modifiers = false;  // the last frame had those of a chord
  std::vector<std::string> keys;     // chords of this frame, for windows that listen to some themselves
  int frames_to_field = 0;           // counts down from kFramesToField
  DialogFocus focus;
  ChooserUi chooser;
  DesktopChooser desktop;
  std::map<std::string, Widget, std::less<>> widgets;

  // Shares of the window that the splitters set.
  float left = 0.24F, right = 0.25F, bottom = 0.38F, middle = 0.5F;  // middle: of the graphs of two models

  // State of single windows.
  std::string path_field, search_field, palette_field, export_field = "graph.svg", export_subject = "the graph",
                                                       goto_field, goto_problem, run_problem;
  int palette_at = 0;
  int32_t hovered_item = -1;
  int32_t hovered_wire = -1;
  ImVec2 zoom_box{-1, -1};  // where a drag with Ctrl began on the graph
  const GraphView* zoomed_graph = nullptr;
  int scrolled_difference = -1;  // the list has been scrolled to it
  TensorUi tensor;
  LeftTab scrolled_tab = LeftTab::alerts;
  int32_t scrolled_row = -1;  // the table has been scrolled to it

  const Theme& theme() const { return theme_of(viewer->is_dark); }
  void mark(std::string name);  // the widget just drawn
  void mark(std::string name, ImVec2 least, ImVec2 greatest);
};

// Colors of ImGui's own widgets.
void apply_theme(const Theme& theme, float scale);
ImU32 to_imgui(Color color);
// The theme's color with another opacity.
ImU32 faded(ImU32 color, float opacity);

// Text over as many lines as it needs, broken at blanks only: numbers stay whole.
void wrapped_text(std::string_view text, float width);
// A slider over whole numbers that shows its text over a thin bar; true when it was moved.
bool index_slider(Ui& ui, const char* name, const std::string& text, int64_t& at, int64_t count, float width);

// A menu at the right mouse button over the widget just drawn: titles, and what each copies.
struct CopyItem {
  const char* title;
  std::function<std::string()> text;
};
void copy_menu(Ui& ui, const char* name, std::initializer_list<CopyItem> items);

bool was_pressed(const Ui& ui, std::string_view chord);  // in this frame
void close_on_escape(const Ui& ui);                      // in a popup that is open

// A button that names itself in the register; highlighted when `is_on`.
bool small_button(Ui& ui, const char* label, const char* name, bool is_on = false);
void show_tooltip(const std::string& text);
void tooltip(const char* text);  // of the widget just drawn, when the mouse is over it
// In the middle of an area: what is being computed, with a bar that moves.
void busy_mark(Ui& ui, ImVec2 least, ImVec2 greatest, const std::string& text);
// "Ctrl+Up" as people write it: with an arrow.
std::string readable_keys(std::string_view chord);
// A field for a text of any length.
bool text_field(const char* label, const char* hint, std::string& text, ImGuiInputTextFlags flags = 0);
// The next small button is next to the last one where it fits, else below.
void same_line_if_fits(const Ui& ui, const char* title, float gap);

// Two files of one folder: the folder stands once.
std::string title_of_recent(const std::string& files);

// As `font` can draw it, in one line: a line's end is "\\n", what the font has no letter for "\\u4E2D". The letters
// that it lacks are noted for size_fonts().
std::set<ImWchar>& missed_letters();
std::string drawable_text(const ImFont* font, std::string_view text);

// The drawable text cut to a width, "..." at its end.
std::string cut_text(const ImFont* font, float size, std::string_view text, float width);
// The text cut at its beginning: the end of a path identifies it best.
std::string cut_front(const ImFont* font, float size, std::string_view text, float width);

}  // namespace parallax::gui
