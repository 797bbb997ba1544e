// SPDX-License-Identifier: Apache-2.0
// Themes and small helpers of all windows.
#include "gui/panels/ui.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "inspector/base/text.h"

namespace parallax::gui {
namespace {

constexpr ImU32 rgb(uint32_t hex) {
  return IM_COL32(static_cast<int>(hex >> 16 & 255), static_cast<int>(hex >> 8 & 255), static_cast<int>(hex & 255),
                  255);
}

constexpr Theme kDark = {rgb(0x191B1F), rgb(0x22252A), rgb(0x2E3238), rgb(0x3D424A), rgb(0xE6E8EB),
                         rgb(0xA6AEB8), rgb(0x5AA9FF), rgb(0x6CC58A), rgb(0xFF8A5C), rgb(0x3A404A),
                         rgb(0x24282E), rgb(0x16181B), rgb(0x7C8694)};
constexpr Theme kLight = {rgb(0xECEEF1), rgb(0xFAFBFC), rgb(0xE7EAEE), rgb(0xC3C9D1), rgb(0x1B1F24),
                          rgb(0x5B636E), rgb(0x0B66C3), rgb(0x1D7F3F), rgb(0xB5400B), rgb(0xE3E8EE),
                          rgb(0xF4F6F8), rgb(0xFFFFFF), rgb(0x8A94A0)};

ImVec4 vec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

}  // namespace

const Theme& theme_of(bool is_dark) { return is_dark ? kDark : kLight; }

void Ui::mark(std::string name) { mark(std::move(name), ImGui::GetItemRectMin(), ImGui::GetItemRectMax()); }

void Ui::mark(std::string name, ImVec2 least, ImVec2 greatest) { widgets[std::move(name)] = {least, greatest}; }

void apply_theme(const Theme& theme, float scale) {
  ImGuiStyle style;
  style.WindowRounding = 0;
  style.FrameRounding = 4;
  style.PopupRounding = 6;
  style.ChildRounding = 0;
  style.GrabRounding = 4;
  style.ScrollbarSize = 11;
  style.WindowPadding = {8, 8};
  style.FramePadding = {7, 3};
  style.ItemSpacing = {7, 4};
  style.CellPadding = {5, 2};
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 0;
  style.PopupBorderSize = 1;
  style.ScaleAllSizes(scale);
  ImVec4* colors = style.Colors;
  colors[ImGuiCol_Text] = vec(theme.text);
  colors[ImGuiCol_TextDisabled] = vec(theme.dim);
  colors[ImGuiCol_WindowBg] = vec(theme.background);
  colors[ImGuiCol_ChildBg] = vec(theme.panel);
  colors[ImGuiCol_PopupBg] = vec(theme.panel);
  colors[ImGuiCol_Border] = vec(theme.border);
  colors[ImGuiCol_BorderShadow] = {0, 0, 0, 0};
  colors[ImGuiCol_FrameBg] = vec(theme.raised);
  colors[ImGuiCol_FrameBgHovered] = vec(theme.border);
  colors[ImGuiCol_FrameBgActive] = vec(theme.border);
  colors[ImGuiCol_MenuBarBg] = vec(theme.panel);
  colors[ImGuiCol_ScrollbarBg] = {0, 0, 0, 0};
  colors[ImGuiCol_ScrollbarGrab] = vec(theme.border);
  colors[ImGuiCol_ScrollbarGrabHovered] = vec(theme.dim);
  colors[ImGuiCol_ScrollbarGrabActive] = vec(theme.dim);
  colors[ImGuiCol_CheckMark] = vec(theme.accent);
  colors[ImGuiCol_SliderGrab] = vec(faded(theme.accent, 0.45F));  // text stands over it
  colors[ImGuiCol_SliderGrabActive] = vec(faded(theme.accent, 0.6F));
  colors[ImGuiCol_Button] = vec(theme.raised);
  colors[ImGuiCol_ButtonHovered] = vec(theme.border);
  colors[ImGuiCol_ButtonActive] = vec(theme.border);
  colors[ImGuiCol_Header] = vec(faded(theme.accent, 0.32F));
  colors[ImGuiCol_HeaderHovered] = vec(faded(theme.accent, 0.18F));
  colors[ImGuiCol_HeaderActive] = vec(faded(theme.accent, 0.4F));
  colors[ImGuiCol_Separator] = vec(theme.border);
  colors[ImGuiCol_TableHeaderBg] = vec(theme.raised);
  colors[ImGuiCol_TableBorderStrong] = vec(theme.border);
  colors[ImGuiCol_TableBorderLight] = vec(faded(theme.border, 0.5F));
  colors[ImGuiCol_TableRowBg] = {0, 0, 0, 0};
  colors[ImGuiCol_TableRowBgAlt] = vec(faded(theme.raised, 0.35F));
  colors[ImGuiCol_PlotHistogram] = vec(theme.accent);
  colors[ImGuiCol_TextSelectedBg] = vec(faded(theme.accent, 0.4F));
  colors[ImGuiCol_ModalWindowDimBg] = {0, 0, 0, 0.4F};
  ImGui::GetStyle() = style;
}

ImU32 to_imgui(Color color) { return IM_COL32(color.r, color.g, color.b, color.a); }

ImU32 faded(ImU32 color, float opacity) {
  const auto alpha = static_cast<ImU32>(opacity * 255.0F);
  return (color & ~static_cast<ImU32>(IM_COL32_A_MASK)) | alpha << IM_COL32_A_SHIFT;
}

namespace {

int resize_text(ImGuiInputTextCallbackData* data) {
  if (data->EventFlag == ImGuiInputTextFlags_CallbackResize) {
    auto* text = static_cast<std::string*>(data->UserData);
    text->resize(static_cast<size_t>(data->BufTextLen));
    data->Buf = text->data();
  }
  return 0;
}

}  // namespace

bool text_field(const char* label, const char* hint, std::string& text, ImGuiInputTextFlags flags) {
  return ImGui::InputTextWithHint(label, hint, text.data(), text.capacity() + 1,
                                  flags | ImGuiInputTextFlags_CallbackResize, resize_text, &text);
}

namespace {

void wrapped_line(std::string_view line, float width) {
  const std::string drawable = drawable_text(ImGui::GetFont(), line);
  std::string_view text = drawable;
  const auto width_of = [](std::string_view part) {
    return ImGui::CalcTextSize(part.data(), part.data() + part.size()).x;
  };
  while (!text.empty()) {
    size_t end = text.size();
    if (width_of(text) > width) {
      size_t fits = 0;
      for (size_t blank = text.find(' '); blank != std::string_view::npos; blank = text.find(' ', blank + 1)) {
        if (width_of(text.substr(0, blank)) > width) break;
        fits = blank;
      }
      end = fits;
      if (fits == 0) {  // one word wider than the line: broken where it must be
        const char* stop = nullptr;
        ImGui::GetFont()->CalcTextSizeA(ImGui::GetFontSize(), std::max(width, 10.0F), 0, text.data(),
                                        text.data() + std::min(text.size(), text.find(' ')), &stop);
        end = std::max<size_t>(1, static_cast<size_t>(stop - text.data()));
      }
    }
    ImGui::TextUnformatted(text.data(), text.data() + end);
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (!text.empty()) ImGui::SetCursorPosY(ImGui::GetCursorPosY() - ImGui::GetStyle().ItemSpacing.y + 1);
  }
}

}  // namespace

void wrapped_text(std::string_view text, float width) {
  for (std::string_view line : split(text, '\n')) wrapped_line(line, width);
}

bool index_slider(Ui& ui, const char* name, const std::string& text, int64_t& at, int64_t count, float width) {
  const float height = ImGui::GetFrameHeight();
  ImGui::InvisibleButton(name, {width, height});
  ui.mark(name);
  const ImVec2 least = ImGui::GetItemRectMin(), greatest = ImGui::GetItemRectMax();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Theme& theme = ui.theme();
  const bool is_hot = ImGui::IsItemHovered() || ImGui::IsItemActive();
  const float rounding = 4 * ui.scale, thickness = 3 * ui.scale, reach = width - 2 * rounding;
  list->AddRectFilled(least, greatest, is_hot ? theme.border : theme.raised, rounding);
  const float step = reach / static_cast<float>(std::max<int64_t>(1, count));
  const float left = least.x + rounding + step * static_cast<float>(at);
  list->AddRectFilled({left, greatest.y - thickness}, {left + std::max(step, 6 * ui.scale), greatest.y}, theme.accent,
                      thickness / 2);
  const ImVec2 extent = ImGui::CalcTextSize(text.c_str());
  list->AddText({std::floor(least.x + (width - extent.x) / 2), std::floor(least.y + (height - extent.y) / 2 - 1)},
                theme.text, text.c_str());
  const int64_t before = at;
  if (ImGui::IsItemActive()) {
    const float location = (ImGui::GetIO().MousePos.x - least.x - rounding) / step;
    at = std::clamp<int64_t>(static_cast<int64_t>(std::floor(location)), 0, count - 1);
  } else if (ImGui::IsItemHovered() && ImGui::GetIO().MouseWheel != 0) {
    at = std::clamp<int64_t>(at - static_cast<int64_t>(ImGui::GetIO().MouseWheel), 0, count - 1);
  }
  return at != before;
}

std::string readable_keys(std::string_view chord) {
  const std::string text(chord);
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"Up", "\u2191"},      {"Down", "\u2193"},   {"Left", "\u2190"}, {"Right", "\u2192"}, {"LeftBracket", "["},
      {"RightBracket", "]"}, {"Period", "."},      {"Comma", ","},     {"Slash", "/"},      {"Equal", "+"},
      {"Minus", "-"},        {"PageDown", "PgDn"}, {"PageUp", "PgUp"}, {"Escape", "Esc"}};
  const size_t at = text.rfind('+') == std::string::npos ? 0 : text.rfind('+') + 1;
  for (const auto& [name, shown] : kNames) {
    if (text.substr(at) == name) return text == "Shift+Slash" ? "?" : text.substr(0, at) + shown;
  }
  return text;
}

bool small_button(Ui& ui, const char* label, const char* name, bool is_on) {
  if (is_on) {
    ImGui::PushStyleColor(ImGuiCol_Button, faded(ui.theme().accent, 0.9F));
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, ui.theme().accent);
    ImGui::PushStyleColor(ImGuiCol_Text, ui.viewer->is_dark ? IM_COL32(10, 14, 20, 255) : IM_COL32_WHITE);
  }
  const bool pressed = ImGui::Button(label);
  if (is_on) ImGui::PopStyleColor(3);
  ui.mark(name);
  return pressed;
}

void busy_mark(Ui& ui, ImVec2 least, ImVec2 greatest, const std::string& text) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 extent = ImGui::CalcTextSize(text.c_str());
  const ImVec2 middle{std::floor((least.x + greatest.x) / 2), std::floor((least.y + greatest.y) / 2)};
  const ImVec2 pad{14 * ui.scale, 10 * ui.scale};
  const ImVec2 a{middle.x - extent.x / 2 - pad.x, middle.y - extent.y / 2 - pad.y},
      b{middle.x + extent.x / 2 + pad.x, middle.y + extent.y / 2 + pad.y};
  list->AddRectFilled(a, b, faded(ui.theme().raised, 0.95F), 5 * ui.scale);
  list->AddText({middle.x - extent.x / 2, middle.y - extent.y / 2}, ui.theme().text, text.c_str());
  const auto at = static_cast<float>(std::fmod(ImGui::GetTime(), 1.0)), length = (b.x - a.x) * 0.3F;
  const float left = a.x + (b.x - a.x - length) * (at < 0.5F ? at * 2 : 2 - at * 2);
  list->AddRectFilled({left, b.y - 3 * ui.scale}, {left + length, b.y}, ui.theme().accent, 1.5F * ui.scale);
}

void same_line_if_fits(const Ui& ui, const char* title, float gap) {
  const float wide = ImGui::CalcTextSize(title).x + 2 * ImGui::GetStyle().FramePadding.x + 2 * ui.scale;
  const float end = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
  if (ImGui::GetItemRectMax().x + gap + wide <= end) ImGui::SameLine(0, gap);
}

void show_tooltip(const std::string& text) {
  const float pad = std::floor(ImGui::GetFontSize() * 0.5F);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {pad, pad});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, pad * 0.7F);
  ImGui::SetTooltip("%s", text.c_str());
  ImGui::PopStyleVar(2);
}

void tooltip(const char* text) {
  if (ImGui::IsItemHovered()) show_tooltip(text);
}

std::string title_of_recent(const std::string& files) {
  const size_t at = files.find(kRecentSeparator);
  if (at == std::string::npos) return files;
  const std::string a = files.substr(0, at), b = files.substr(at + 1);
  const size_t folder = a.rfind('/') + 1;
  const bool is_same = folder > 0 && b.rfind('/') + 1 == folder && b.starts_with(a.substr(0, folder));
  return a + "  and  " + (is_same ? b.substr(folder) : b);
}

bool was_pressed(const Ui& ui, std::string_view chord) { return std::ranges::find(ui.keys, chord) != ui.keys.end(); }

void copy_menu(Ui& ui, const char* name, std::initializer_list<CopyItem> items) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {8 * ui.scale, 8 * ui.scale});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {8 * ui.scale, 5 * ui.scale});
  if (ImGui::BeginPopupContextItem(name)) {
    close_on_escape(ui);
    for (const CopyItem& item : items) {
      if (ImGui::MenuItem(item.title)) ui.viewer->copy(item.text());
      ui.mark(std::string("copy:") + item.title);
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

void close_on_escape(const Ui& ui) {
  if (was_pressed(ui, "Escape")) ImGui::CloseCurrentPopup();
}

namespace {

// The next character of UTF-8 and how many bytes it has; bytes that are none are one each.
std::pair<uint32_t, size_t> next_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t size = byte(0) < 0x80   ? 1
                      : byte(0) < 0xC2 ? 0
                      : byte(0) < 0xE0 ? 2
                      : byte(0) < 0xF0 ? 3
                      : byte(0) < 0xF5 ? 4
                                       : 0;
  if (size == 1) return {byte(0), 1};
  if (size == 0 || size > text.size()) return {byte(0), 1};
  uint32_t code = byte(0) & (0x7FU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {byte(0), 1};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  return {code, size};
}

}  // namespace

std::set<ImWchar>& missed_letters() {
  static std::set<ImWchar> letters;
  return letters;
}

std::string drawable_text(const ImFont* font, std::string_view text) {
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
  if (is_plain) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const auto [code, size] = next_character(text);
    if (code == '\n') {
      out += "\\n";
    } else if (code < 0x20 || (size == 1 && code >= 0x7F)) {
      out += fmt::format("\\x{:02X}", code);
    } else if (code > 0xFFFF || font->FindGlyphNoFallback(static_cast<ImWchar>(code)) == nullptr) {
      if (code <= 0xFFFF) missed_letters().insert(static_cast<ImWchar>(code));
      out += fmt::format("\\u{:04X}", code);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

std::string cut_text(const ImFont* font, float size, std::string_view whole, float width) {
  const std::string drawable = drawable_text(font, whole);
  const std::string_view text = drawable;
  const auto width_of = [&](std::string_view part) {
    return font->CalcTextSizeA(size, FLT_MAX, 0, part.data(), part.data() + part.size()).x;
  };
  if (width_of(text) <= width) return std::string(text);
  const float dots = width_of("...");
  const char* end = nullptr;
  font->CalcTextSizeA(size, std::max(1.0F, width - dots), 0, text.data(), text.data() + text.size(), &end);
  return std::string(text.data(), end) + "...";
}

std::string cut_front(const ImFont* font, float size, std::string_view whole, float width) {
  const std::string drawable = drawable_text(font, whole);
  std::string_view text = drawable;
  const auto width_of = [&](std::string_view part) {
    return font->CalcTextSizeA(size, FLT_MAX, 0, part.data(), part.data() + part.size()).x;
  };
  if (width_of(text) <= width) return std::string(text);
  const float left = width - width_of("...");
  while (!text.empty() && width_of(text) > left) {
    text.remove_prefix(1);
    while (!text.empty() && (static_cast<unsigned char>(text[0]) & 0xC0U) == 0x80U) text.remove_prefix(1);  // UTF-8
  }
  return "..." + std::string(text);
}

}  // namespace parallax::gui
