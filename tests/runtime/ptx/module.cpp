// SPDX-License-Identifier: Apache-2.0
// Cuts a PTX file into functions and variables.
#include "tests/runtime/ptx/module.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "tests/runtime/ptx/device_memory.h"
#include "tests/runtime/ptx/text.h"

namespace parallax::ptx {
namespace {

std::vector<std::unique_ptr<Module>>& modules() {
  static auto* all = new std::vector<std::unique_ptr<Module>>;  // as long as the process, whose exit still launches
  return *all;
}
std::unordered_map<std::string, Function*>& kernels() {
  static auto* all = new std::unordered_map<std::string, Function*>;
  return *all;
}

// nvcc names anonymous namespaces by the file and by numbers that differ from one compilation to the next:
// "64_GLOBAL__N__1f0c69dd_25_Cuda_movement_movement_cu_04e4336f_13376", 64 characters. The file is kept.
std::string stable_name(std::string name) {
  constexpr std::string_view kBegin = "_GLOBAL__N__";
  for (size_t at = name.find(kBegin); at != std::string::npos; at = name.find(kBegin, at + 1)) {
    size_t digits = at;
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) --digits;
    const auto length = number_of(std::string_view(name).substr(digits, at - digits));
    const size_t file = name.find('_', at + kBegin.size());
    if (!length.has_value() || file == std::string::npos || at + *length > name.size()) continue;
    const size_t begin = name.find('_', file + 1) + 1;
    const size_t bytes = static_cast<size_t>(number_of(name.substr(file + 1, begin - file - 2)).value_or(0));
    const std::string kept = std::string(kBegin) + name.substr(begin, bytes);
    name.replace(digits, at - digits + static_cast<size_t>(*length), kept);
    at = digits;
  }
  return name;
}

class ModuleReader {
 public:
  ModuleReader(Module& module, const std::string& text) : module_(module), text_(text) {}

  void read() {
    while (skip_space()) {
      if (is_directive()) {
        skip_line();
      } else if (text_.compare(at_, 8, ".section") == 0) {
        move_to(after('}', at_));
      } else {
        read_declaration();
      }
    }
  }

 private:
  bool skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size();
  }
  bool is_directive() const {
    for (const char* word : {"//", ".version", ".target", ".address_size", ".file"}) {
      if (text_.compare(at_, std::strlen(word), word) == 0) return true;
    }
    return false;
  }
  void skip_line() { move_to(after('\n', at_)); }
  size_t after(char c, size_t from) const {
    const size_t found = text_.find(c, from);
    return found == std::string::npos ? text_.size() : found + 1;
  }
  void move_to(size_t to) { at_ = to; }
  int line_of(size_t position) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
    counted_ = position;
    return line_;
  }

  void read_declaration() {
    const size_t semicolon = std::min(text_.find(';', at_), text_.size());
    const size_t brace = text_.find('{', at_);
    const std::string head = text_.substr(at_, std::min(semicolon, brace) - at_);
    const bool is_entry = head.find(".entry") != std::string::npos;
    if ((is_entry || head.find(".func") != std::string::npos) && brace < semicolon) {
      read_function(head, is_entry, brace);
    } else {
      read_variable(head, semicolon, brace);
    }
  }

  size_t end_of_body(size_t brace) const {
    int depth = 0;
    for (size_t at = brace; at < text_.size(); ++at) {
      const char c = text_[at];
      if (c == '/' && text_[at + 1] == '/') at = std::min(text_.find('\n', at), text_.size() - 1);
      if (c == '{') ++depth;
      if (c == '}' && --depth == 0) return at;
    }
    throw Problem(module_.file + ": a function has no end");
  }

  static void read_parameters(const std::string& inside, int& bytes, std::vector<Parameter>& into) {
    for (std::string part : split(inside, ',')) {
      if (const size_t word = part.find(".param"); word != std::string::npos) part = part.substr(word + 6);
      const auto declared = declaration_of(part);
      if (!declared.has_value()) continue;
      bytes = aligned(bytes, declared->alignment);
      into.push_back({declared->name, bytes, declared->bytes, declared->alignment});
      bytes += declared->bytes;
    }
  }

  void read_function(const std::string& head, bool is_entry, size_t brace) {
    auto function = std::make_unique<Function>();
    function->module = &module_;
    std::string signature = trim(head.substr(head.find(is_entry ? ".entry" : ".func") + (is_entry ? 6 : 5)));
    if (!is_entry && signature.starts_with('(')) {
      const size_t close = signature.find(')');
      read_parameters(signature.substr(1, close - 1), function->parameter_bytes, function->results);
      signature = trim(signature.substr(close + 1));
    }
    const size_t open = signature.find('(');
    function->name = trim(signature.substr(0, open == std::string::npos ? signature.find_first_of(" \t\n") : open));
    if (open != std::string::npos) {
      const size_t close = signature.find(')', open);
      read_parameters(signature.substr(open + 1, close - open - 1), function->parameter_bytes, function->parameters);
    }
    const size_t end = end_of_body(brace);
    function->body = text_.substr(brace + 1, end - brace - 1);
    function->first_line = line_of(brace);
    if (is_entry) kernels()[stable_name(function->name)] = function.get();
    module_.functions[function->name] = std::move(function);
    move_to(end + 1);
  }

  void read_variable(std::string head, size_t semicolon, size_t brace) {
    std::string initial;
    size_t end = semicolon;
    if (brace < semicolon) {
      const size_t close = text_.find('}', brace);
      initial = text_.substr(brace + 1, close - brace - 1);
      end = text_.find(';', close);
    }
    if (const size_t equals = head.find('='); equals != std::string::npos) {
      if (initial.empty()) initial = trim(head.substr(equals + 1));
      head = head.substr(0, equals);
    }
    declare(head, initial);
    move_to(end >= text_.size() ? text_.size() : end + 1);
  }

  void declare(const std::string& head, const std::string& initial) {
    const auto tail = [&](std::string_view word) { return head.substr(head.find(word) + word.size()); };
    if (head.find(".shared") != std::string::npos) {
      const auto declared = declaration_of(tail(".shared"));
      const bool is_extern = head.find(".extern") != std::string::npos;
      if (declared.has_value())
        module_.shared[declared->name] = {is_extern ? -1 : declared->bytes, std::max(16, declared->alignment)};
      return;
    }
    const bool is_global = head.find(".global") != std::string::npos;
    if (!is_global && head.find(".const") == std::string::npos) return;
    const auto declared = declaration_of(tail(is_global ? ".global" : ".const"));
    if (!declared.has_value() || declared->bytes <= 0) return;
    auto bytes = std::make_unique<std::vector<std::byte>>(static_cast<size_t>(declared->bytes));
    size_t offset = 0;
    const auto width = static_cast<size_t>(bytes_of(declared->type));
    for (const std::string& element : split(initial, ',')) {
      const auto value = number_of(element);
      if (!value.has_value()) throw Problem(module_.file + ": " + declared->name + " begins with " + element);
      if (offset + width > bytes->size()) break;
      std::memcpy(bytes->data() + offset, &*value, width);
      offset += width;
    }
    device_memory().add(bytes->data(), bytes->size());
    module_.variables[declared->name] = {is_global ? Space::global : Space::constant, std::move(bytes)};
  }

  Module& module_;
  const std::string& text_;
  size_t at_ = 0;
  size_t counted_ = 0;
  int line_ = 1;
};

}  // namespace

void load_modules(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path().string());
  }
  if (files.empty()) throw Problem("PTX_FOLDER names " + folder + ", which holds no .ptx file; build the target ptx");
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    std::string text(std::filesystem::file_size(file), '\0');
    std::ifstream(file).read(text.data(), static_cast<std::streamsize>(text.size()));
    modules().push_back(std::make_unique<Module>());
    modules().back()->file = file;
    ModuleReader(*modules().back(), text).read();
  }
}

Function* find_kernel(const std::string& name) {
  const auto found = kernels().find(stable_name(name));
  return found == kernels().end() ? nullptr : found->second;
}

}  // namespace parallax::ptx
