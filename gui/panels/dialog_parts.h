// SPDX-License-Identifier: Apache-2.0
// The parts of dialogs: fields, buttons, check boxes and choices that Tab reaches in their order, Enter and Space press
// and an outline shows.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "gui/panels/ui.h"
#include "gui/viewmodel/file_chooser.h"

namespace parallax::gui {

bool begin_dialog(Ui& ui, const char* name, float width, float height);
void end_dialog(Ui& ui);

// A field has the keyboard when the dialog opens, if it is the first. True when its text changed. `complete` makes more
// of the text when Tab is pressed at its end.
bool dialog_field(Ui& ui, const char* name, const char* hint, std::string& text,
                  const std::function<std::string(const std::string&)>& complete = {});
// A field for a path of this kind, which Tab completes.
bool path_field(Ui& ui, const char* name, const char* hint, std::string& text, FileKind kind);
// The default button is pressed by Enter wherever the keyboard is, except on another button.
bool dialog_button(Ui& ui, const char* label, const char* name, bool is_default = false);
void dialog_check(Ui& ui, const char* label, const char* name, bool& value);
// Up and Down change what is chosen.
void dialog_choice(Ui& ui, const char* name, std::span<const char* const> options, std::string& chosen, float width);

// Sets a field's text while it may have the keyboard, the caret at its end.
void set_field(Ui& ui, const std::string& name, std::string text);
void focus_field(Ui& ui, const std::string& name);

// Before a field that takes the rest of the line, less `right` pixels.
void field_label(const Ui& ui, const char* text, float right = 0);

}  // namespace parallax::gui
