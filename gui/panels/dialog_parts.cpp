// SPDX-License-Identifier: Apache-2.0
// The keyboard in dialogs. The order of Tab is that in which the last frame drew the parts.
#include "gui/panels/dialog_parts.h"

#include <algorithm>
#include <utility>

#include <imgui_internal.h>

namespace parallax::gui {
namespace {

struct FieldText {
  std::string* text;
  std::optional<std::string>* replacement;
};

int edit_text(ImGuiInputTextCallbackData* data) {
  auto* field = static_cast<FieldText*>(data->UserData);
  if (data->EventFlag == ImGuiInputTextFlags_CallbackResize) {
    field->text->resize(static_cast<size_t>(data->BufTextLen));
    data->Buf = field->text->data();
  } else if (data->EventFlag == ImGuiInputTextFlags_CallbackAlways && field->replacement->has_value()) {
    data->DeleteChars(0, data->BufTextLen);
    data->InsertChars(0, (*field->replacement)->c_str());
    data->SelectionStart = data->SelectionEnd = data->CursorPos;
    field->replacement->reset();
  }
  return 0;
}

void outline(const Ui& ui) {
  const float gap = 1 * ui.scale;
  const ImVec2 least = ImGui::GetItemRectMin(), greatest = ImGui::GetItemRectMax();
  ImGui::GetWindowDrawList()->AddRect({least.x - gap, least.y - gap}, {greatest.x + gap, greatest.y + gap},
                                      ui.theme().accent, 4 * ui.scale, 0, 2 * ui.scale);
}

// Enters the part into the order; true where it has the keyboard.
bool add_part(Ui& ui, const char* name, bool is_field) {
  ui.focus.order.push_back({name, is_field});
  return ui.focus.at == name;
}

void move_focus(Ui& ui, int step) {
  DialogFocus& focus = ui.focus;
  if (focus.order.empty()) return;
  const auto count = static_cast<int>(focus.order.size());
  const auto found = std::ranges::find(focus.order, focus.at, &DialogFocus::Part::name);
  const int at = found == focus.order.end() ? (step > 0 ? -1 : 0) : static_cast<int>(found - focus.order.begin());
  const DialogFocus::Part& next = focus.order[static_cast<size_t>((at + step + count) % count)];
  ImGui::ClearActiveID();
  focus.at = next.name;
  focus.is_on_button = !next.is_field;
  if (next.is_field) focus_field(ui, next.name);
}

}  // namespace

bool begin_dialog(Ui& ui, const char* name, float width, float height) {
  const ImVec2 display = ImGui::GetIO().DisplaySize;
  const ImVec2 size{std::min(width * ui.scale, display.x * 0.92F),
                    height > 0 ? std::min(height * ui.scale, display.y * 0.85F) : 0};
  ImGui::SetNextWindowPos({display.x / 2, display.y * 0.12F}, ImGuiCond_Always, {0.5F, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {14 * ui.scale, 12 * ui.scale});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 8 * ui.scale);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.theme().panel);
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                      ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                                      ImGuiWindowFlags_NoCollapse;
  const bool visible = ImGui::Begin(name, nullptr, kFlags);
  ui.focus.order.clear();
  if (std::exchange(ui.focus.is_backdrop_clicked, false)) ImGui::SetWindowFocus();
  if (ImGui::IsWindowAppearing()) {
    ImGui::SetWindowFocus();
    ui.focus = {};
    ui.keys.clear();  // the key that opened it is not for it
  }
  return visible;
}

void end_dialog(Ui& ui) {
  if (!ui.focus.has_completed && was_pressed(ui, "Tab")) move_focus(ui, 1);
  if (was_pressed(ui, "Shift+Tab")) move_focus(ui, -1);
  ui.focus.has_completed = false;
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

bool dialog_field(Ui& ui, const char* name, const char* hint, std::string& text,
                  const std::function<std::string(const std::string&)>& complete) {
  DialogFocus& focus = ui.focus;
  if (focus.at.empty()) focus_field(ui, name);
  const bool has_keyboard = add_part(ui, name, true);
  if (has_keyboard && std::exchange(focus.is_due, false)) ImGui::SetKeyboardFocusHere();
  std::optional<std::string> replacement;
  if (focus.replaced == name && focus.replacement.has_value()) {
    text = *focus.replacement;
    replacement = std::exchange(focus.replacement, std::nullopt);
  }
  if (complete && has_keyboard && !text.empty() && was_pressed(ui, "Tab")) {
    std::string more = complete(text);
    focus.has_completed = more != text;
    if (focus.has_completed) text = *(replacement = std::move(more));
  }
  const std::string before = text;
  FieldText field{&text, &replacement};
  constexpr ImGuiInputTextFlags kFlags =
      ImGuiInputTextFlags_CallbackResize | ImGuiInputTextFlags_CallbackAlways | ImGuiInputTextFlags_AutoSelectAll;
  bool changed = ImGui::InputTextWithHint((std::string("##") + name).c_str(), hint, text.data(), text.capacity() + 1,
                                          kFlags, edit_text, &field);
  ui.mark(name);
  if (ImGui::IsItemActivated()) {
    focus.at = name;
    focus.is_on_button = false;
  }
  if (ImGui::IsItemActive()) outline(ui);
  return changed || text != before || focus.has_completed;
}

bool path_field(Ui& ui, const char* name, const char* hint, std::string& text, FileKind kind) {
  return dialog_field(ui, name, hint, text, [kind](const std::string& path) { return complete_path(path, kind); });
}

bool dialog_button(Ui& ui, const char* label, const char* name, bool is_default) {
  const bool has_keyboard = add_part(ui, name, false);
  const bool pressed = small_button(ui, label, name);
  if (has_keyboard) outline(ui);
  const bool is_entered = was_pressed(ui, "Enter") && (has_keyboard || (is_default && !ui.focus.is_on_button));
  return pressed || is_entered || (has_keyboard && was_pressed(ui, "Space"));
}

void dialog_check(Ui& ui, const char* label, const char* name, bool& value) {
  const bool has_keyboard = add_part(ui, name, false);
  ImGui::Checkbox(label, &value);
  ui.mark(name);
  if (!has_keyboard) return;
  outline(ui);
  ui.focus.is_on_button = false;  // Enter is for the default button
  if (was_pressed(ui, "Space")) value = !value;
}

void dialog_choice(Ui& ui, const char* name, std::span<const char* const> options, std::string& chosen, float width) {
  const bool has_keyboard = add_part(ui, name, false);
  ImGui::SetNextItemWidth(width);
  if (ImGui::BeginCombo((std::string("##") + name).c_str(), chosen.c_str())) {
    close_on_escape(ui);
    for (const char* option : options) {
      if (ImGui::Selectable(option, chosen == option)) chosen = option;
    }
    ImGui::EndCombo();
  }
  ui.mark(name);
  if (!has_keyboard) return;
  outline(ui);
  ui.focus.is_on_button = false;
  const auto count = static_cast<std::ptrdiff_t>(options.size());
  const auto at = std::ranges::find(options, chosen) - options.begin();
  const int step = (was_pressed(ui, "Down") ? 1 : 0) - (was_pressed(ui, "Up") ? 1 : 0);
  if (step != 0) chosen = options[static_cast<size_t>(std::clamp<std::ptrdiff_t>(at + step, 0, count - 1))];
}

void set_field(Ui& ui, const std::string& name, std::string text) {
  ui.focus.replaced = name;
  ui.focus.replacement = std::move(text);
}

void focus_field(Ui& ui, const std::string& name) {
  ui.focus.at = name;
  ui.focus.is_due = true;
  ui.focus.is_on_button = false;
  ui.frames_to_field = kFramesToField;
}

void field_label(const Ui& ui, const char* text, float right) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("%s", text);
  ImGui::SameLine(92 * ui.scale);
  ImGui::SetNextItemWidth(right > 0 ? -right : -1);
}

}  // namespace parallax::gui
