// SPDX-License-Identifier: Apache-2.0
// The queue of keyboard and mouse events: as many a frame as Dear ImGui and the windows can tell apart, each in its
// order. An event is a command or part of a text by what the events before it have done.
#include <algorithm>
#include <array>
#include <cfloat>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "gui/panels/panels.h"

namespace parallax::gui {
namespace {

// The keys that ImGui's text fields listen to. Tab is not among them: dialogs and path fields take it themselves.
constexpr std::pair<std::string_view, ImGuiKey> kFieldKeys[] = {{"Left", ImGuiKey_LeftArrow},
                                                                {"Right", ImGuiKey_RightArrow},
                                                                {"Up", ImGuiKey_UpArrow},
                                                                {"Down", ImGuiKey_DownArrow},
                                                                {"PageUp", ImGuiKey_PageUp},
                                                                {"PageDown", ImGuiKey_PageDown},
                                                                {"Home", ImGuiKey_Home},
                                                                {"End", ImGuiKey_End},
                                                                {"Insert", ImGuiKey_Insert},
                                                                {"Delete", ImGuiKey_Delete},
                                                                {"Enter", ImGuiKey_Enter},
                                                                {"Backspace", ImGuiKey_Backspace},
                                                                {"A", ImGuiKey_A},
                                                                {"C", ImGuiKey_C},
                                                                {"V", ImGuiKey_V},
                                                                {"X", ImGuiKey_X},
                                                                {"Y", ImGuiKey_Y},
                                                                {"Z", ImGuiKey_Z}};

struct Chord {
  std::string_view key;
  bool has_ctrl = false, has_shift = false, has_alt = false;
};

Chord parts_of(std::string_view chord) {
  Chord parts;
  for (const auto& [prefix, flag] : {std::pair{std::string_view("Ctrl+"), &Chord::has_ctrl},
                                     {std::string_view("Alt+"), &Chord::has_alt},
                                     {std::string_view("Shift+"), &Chord::has_shift}}) {
    if (!chord.starts_with(prefix)) continue;
    parts.*flag = true;
    chord.remove_prefix(prefix.size());
  }
  parts.key = chord;
  return parts;
}

ImGuiKey field_key(std::string_view key) {
  const auto found = std::ranges::find(kFieldKeys, key, &std::pair<std::string_view, ImGuiKey>::first);
  return found == std::end(kFieldKeys) ? ImGuiKey_COUNT : found->second;
}

// True when the frame that begins will find a text field with the keyboard.
bool has_field() { return ImGui::GetCurrentContext()->WantTextInputNextFrame == 1; }

// Keys that a text field takes belong to it: those that write, and its own combinations with Ctrl.
bool belongs_to_field(const std::string& chord, bool is_in_field) {
  const Chord parts = parts_of(chord);
  const bool is_function = parts.key.size() >= 2 && parts.key[0] == 'F' && parts.key[1] >= '1' && parts.key[1] <= '9';
  if (parts.has_alt || is_function || parts.key == "Escape") return false;
  if (!parts.has_ctrl) return true;
  constexpr std::array<std::string_view, 5> kNotWithCtrl = {"Up", "Down", "Enter", "PageUp", "PageDown"};
  return is_in_field && field_key(parts.key) != ImGuiKey_COUNT &&
         std::ranges::find(kNotWithCtrl, parts.key) == kNotWithCtrl.end();
}

bool shows_field(const Viewer& viewer) {
  return viewer.show_palette || viewer.show_open || viewer.show_run || viewer.show_export || viewer.show_goto;
}

bool shows_dialog(const Viewer& viewer) { return shows_field(viewer) || viewer.show_help || viewer.show_replace; }

// ImGui gives a text field the keyboard some frames after it was asked to: what is typed meanwhile waits for it.
bool awaits_field(const Ui& ui) {
  constexpr int kFramesWithTheFieldBefore = kFramesToField - 3;  // it still has the keyboard
  return ui.frames_to_field > kFramesWithTheFieldBefore || (ui.frames_to_field > 0 && !has_field());
}

bool shows_popup() { return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup); }

void hold_modifiers(const Chord& chord, const InputEvent& held) {
  ImGuiIO& io = ImGui::GetIO();
  io.KeyCtrl = held.has_ctrl || chord.has_ctrl;
  io.KeyShift = held.has_shift || chord.has_shift;
  io.KeyAlt = held.has_alt || chord.has_alt;
}

// A press is a character for a text field, or one that a window must see alone, or a command that no window sees.
enum class PressKind : uint8_t { character, alone, command };

PressKind kind_of(const Ui& ui, const InputEvent& press) {
  const Chord chord = parts_of(press.chord);
  const bool writes = press.chord.empty() || (!press.text.empty() && !chord.has_ctrl && !chord.has_alt);
  if (has_field() && writes) return PressKind::character;
  return has_field() || shows_dialog(*ui.viewer) || shows_popup() ? PressKind::alone : PressKind::command;
}

// The kinds of event that this frame has taken.
struct Taken {
  bool has_character = false, has_alone = false, has_command = false, has_button = false, has_wheel = false;
  bool any() const { return has_character || has_alone || has_command || has_button || has_wheel; }
};

bool fits(PressKind kind, const InputEvent& press, const Taken& taken) {
  if (taken.has_alone || taken.has_button || taken.has_wheel) return false;
  if (kind == PressKind::character) return !taken.has_command;
  if (kind == PressKind::command) return !taken.has_character;
  const ImGuiKey key = field_key(parts_of(press.chord).key);
  const bool was_down = key != ImGuiKey_COUNT && ImGui::GetIO().KeysDownDuration[key] >= 0;  // must be seen up first
  return !taken.any() && !was_down;
}

bool take_press(Ui& ui, const InputEvent& press, Taken& taken) {
  const PressKind kind = kind_of(ui, press);
  if (!fits(kind, press, taken)) return false;
  taken.has_character |= kind == PressKind::character;
  taken.has_alone |= kind == PressKind::alone;
  taken.has_command |= kind == PressKind::command;
  ImGuiIO& io = ImGui::GetIO();
  const bool is_in_field = has_field(), had_field_dialog = shows_field(*ui.viewer);
  if (is_in_field) io.AddInputCharactersUTF8(press.text.c_str());
  if (press.chord.empty()) return true;
  const Chord chord = parts_of(press.chord);
  if (const ImGuiKey key = field_key(chord.key); key != ImGuiKey_COUNT && is_in_field && kind == PressKind::alone) {
    io.KeysDown[key] = true;
    hold_modifiers(chord, ui.held);
    ui.has_chord_modifiers = true;
  }
  if (is_in_field && press.chord == "Escape") ImGui::SetWindowFocus(nullptr);  // lets the keyboard go
  ui.keys.push_back(press.chord);
  // A menu that is open takes Escape itself; other keys are not for the windows under it.
  if (!shows_popup()) handle_key(ui, press.chord);
  if (ui.viewer->focus_search || (shows_field(*ui.viewer) && !had_field_dialog)) ui.frames_to_field = kFramesToField;
  return true;
}

// False when the event must wait for the next frame.
bool take(Ui& ui, const InputEvent& event, Taken& taken) {
  ImGuiIO& io = ImGui::GetIO();
  switch (event.kind) {
    case InputEvent::Kind::press:
      return take_press(ui, event, taken);
    case InputEvent::Kind::move:
      if (taken.any()) return false;
      io.MousePos = event.at;
      return true;
    case InputEvent::Kind::button:
      if (taken.any()) return false;
      io.MouseDown[event.button] = event.is_down;
      taken.has_button = true;
      return true;
    case InputEvent::Kind::wheel:
      if (taken.has_character || taken.has_alone || taken.has_command || taken.has_button) return false;
      io.MouseWheelH += event.at.x;
      io.MouseWheel += event.at.y;
      taken.has_wheel = true;
      return true;
    case InputEvent::Kind::modifiers:
      if (taken.any()) return false;
      ui.held = event;
      hold_modifiers({}, ui.held);
      return true;
  }
  return true;
}

}  // namespace

bool handle_key(Ui& ui, const std::string& chord) {
  Viewer& viewer = *ui.viewer;
  const bool is_typing = has_field() || shows_field(viewer) || viewer.show_replace;
  if (is_typing && belongs_to_field(chord, has_field())) return false;
  const Command* command = command_for_key(chord);
  if (command == nullptr || command->run(viewer)) return command != nullptr;
  if (const std::string obstacle = obstacle_to(viewer, *command); !obstacle.empty())
    viewer.note = fmt::format("{}: {}", command->title, obstacle);
  return false;
}

void begin_frame(Ui& ui) {
  ImGuiIO& io = ImGui::GetIO();
  for (const auto& [name, key] : kFieldKeys) {
    io.KeyMap[key] = key;
    io.KeysDown[key] = false;  // each press is down for one frame
  }
  io.KeyRepeatDelay = FLT_MAX;  // repeats come as presses, at the desktop's rate
  if (std::exchange(ui.has_chord_modifiers, false)) hold_modifiers({}, ui.held);
  ui.keys.clear();
  ui.frames_to_field = std::max(0, ui.frames_to_field - 1);
  Taken taken;
  while (!ui.input.empty() && !awaits_field(ui)) {
    const InputEvent event = ui.input.front();
    if (!take(ui, event, taken)) break;
    ui.input.pop_front();
  }
  ImGui::NewFrame();
}

}  // namespace parallax::gui
