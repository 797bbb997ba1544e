// SPDX-License-Identifier: Apache-2.0
// The body of a function as instructions: declarations get offsets, operands are resolved, labels become positions.
#include <algorithm>
#include <cstring>

#include "tests/runtime/ptx/module.h"
#include "tests/runtime/ptx/opcode_words.h"
#include "tests/runtime/ptx/text.h"

namespace parallax::ptx {
namespace {

struct SpecialName {
  std::string_view name;
  Special special;
};
constexpr SpecialName kSpecials[] = {{"%tid.x", Special::tid_x},
                                     {"%tid.y", Special::tid_y},
                                     {"%tid.z", Special::tid_z},
                                     {"%ntid.x", Special::ntid_x},
                                     {"%ntid.y", Special::ntid_y},
                                     {"%ntid.z", Special::ntid_z},
                                     {"%ctaid.x", Special::ctaid_x},
                                     {"%ctaid.y", Special::ctaid_y},
                                     {"%ctaid.z", Special::ctaid_z},
                                     {"%nctaid.x", Special::nctaid_x},
                                     {"%nctaid.y", Special::nctaid_y},
                                     {"%nctaid.z", Special::nctaid_z},
                                     {"%laneid", Special::laneid},
                                     {"%warpid", Special::warpid},
                                     {"%lanemask_lt", Special::lanes_below},
                                     {"%lanemask_le", Special::lanes_up_to},
                                     {"%lanemask_gt", Special::lanes_above},
                                     {"%lanemask_ge", Special::lanes_from},
                                     {"%lanemask_eq", Special::own_lane},
                                     {"%clock", Special::clock},
                                     {"%clock64", Special::clock},
                                     {"%dynamic_smem_size", Special::dynamic_shared_bytes}};

class FunctionParser {
 public:
  explicit FunctionParser(Function& function) : function_(function), module_(*function.module) {
    for (const Parameter& parameter : function.parameters) parameters_[parameter.name] = parameter.offset;
    for (const Parameter& result : function.results) parameters_[result.name] = result.offset;
  }

  void parse() {
    const std::string& text = function_.body;
    line_ = function_.first_line;
    std::string gathered;
    for (size_t at = 0; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '/' && text[at + 1] == '/') at = std::min(text.find('\n', at), text.size() - 1);
      if (text[at] == '\n') ++line_;
      const bool is_comment = c == '/' && text[at] == '\n';
      if (is_comment || !ends_piece(c, at, gathered)) {
        gathered += is_comment ? ' ' : c;
      } else {
        gathered.clear();
      }
    }
    resolve_labels();
    function_.is_parsed = true;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Problem("kernel " + function_.name + ", line " + std::to_string(line_) + " of " + module_.file + ": " + what);
  }

  // True where `gathered` was complete before `c` and has been dealt with.
  bool ends_piece(char c, size_t at, const std::string& gathered) {
    const std::string& text = function_.body;
    if (c == ';') {
      statement(trim(gathered));
      return true;
    }
    if (c != '{' && c != '}' && c != ':' && c != '\n') return false;
    const std::string piece = trim(gathered);
    if (c == '{' || c == '}') return piece.empty();
    if (c == '\n') return piece.starts_with(".loc") || piece.starts_with(".pragma");
    const bool is_double = text[at + 1] == ':' || text[at - 1] == ':';
    if (is_double || (!piece.starts_with('$') && piece.find_first_of(" \t.") != std::string::npos)) return false;
    labels_[piece] = static_cast<int>(function_.code.size());
    last_label_ = piece;
    return true;
  }

  void statement(const std::string& text) {
    if (text.empty()) return;
    if (text[0] != '.') {
      instruction(text);
    } else if (text.starts_with(".reg")) {
      for (const std::string& part : split(text.substr(4), ',')) {
        const std::string name = part.substr(part.find_last_of(" \t") + 1);
        if (name.find('<') == std::string::npos && name[0] != '%') register_named(name);
      }
    } else if (text.starts_with(".pragma")) {
      return;  // how far ptxas unrolls
    } else if (text.starts_with(".branchtargets")) {
      table_names_[last_label_] = static_cast<int>(tables_.size());
      tables_.push_back(split(text.substr(14), ','));
    } else {
      variable(text);
    }
  }

  void variable(const std::string& text) {
    const size_t word = text.find(' ');
    const auto declared = declaration_of(text.substr(std::min(word, text.find('\t'))));
    const auto reserve = [&](std::map<std::string, int>& offsets, int& bytes) {
      bytes = aligned(bytes, std::max(16, declared->alignment));
      offsets[declared->name] = bytes;
      bytes += declared->bytes;
    };
    if (!declared.has_value()) refuse("the declaration '" + text + "' is not known");
    if (text.starts_with(".shared")) {
      if (declared->bytes < 0) shared_[declared->name] = kDynamicBase;
      if (declared->bytes >= 0) reserve(shared_, function_.shared_bytes);
    } else if (text.starts_with(".local")) {
      reserve(local_, function_.local_bytes);
    } else if (text.starts_with(".param")) {
      reserve(parameters_, function_.parameter_bytes);
    } else {
      refuse("the declaration '" + text + "' is not known");
    }
  }

  int register_named(const std::string& name) {
    const auto [found, is_new] = registers_.emplace(name, function_.registers);
    if (is_new) ++function_.registers;
    return found->second;
  }

  // The address of a variable; false where there is none of that name.
  bool find_variable(const std::string& name, Operand& operand) {
    const std::pair<const std::map<std::string, int>*, Space> own[] = {
        {&parameters_, Space::param}, {&local_, Space::local}, {&shared_, Space::shared}};
    for (const auto& [offsets, space] : own) {
      const auto found = offsets->find(name);
      if (found == offsets->end()) continue;
      operand.space = space;
      operand.immediate = static_cast<uint64_t>(found->second);
      return true;
    }
    if (const auto found = module_.shared.find(name); found != module_.shared.end()) {
      const auto& [bytes, alignment] = found->second;
      function_.shared_bytes = aligned(function_.shared_bytes, alignment);
      shared_[name] = bytes < 0 ? kDynamicBase : function_.shared_bytes;
      if (bytes > 0) function_.shared_bytes += bytes;
      return find_variable(name, operand);
    }
    const auto found = module_.variables.find(name);
    if (found == module_.variables.end()) return false;
    operand.space = found->second.space;
    operand.immediate = reinterpret_cast<uint64_t>(found->second.bytes->data());
    return true;
  }

  Operand address(const std::string& text) {
    std::string base = split(text.substr(1, text.size() - 2), ',')[0];
    uint64_t offset = 0;
    if (const size_t sign = base.find_first_of("+-", 1); sign != std::string::npos) {
      const std::string number = trim(base.substr(base[sign] == '+' ? sign + 1 : sign));
      const auto value = number_of(number);
      if (!value.has_value()) refuse("the address " + text + " is not known");
      offset = *value;
      base = trim(base.substr(0, sign));
    }
    Operand operand = parse_operand(base);
    if (operand.kind == Operand::Kind::none || operand.kind == Operand::Kind::name)
      refuse("the address " + text + " is not known");
    operand.immediate += offset;
    return operand;
  }

  Operand parse_operand(const std::string& given) {
    Operand operand;
    operand.text = trim(given);
    const std::string& text = operand.text;
    if (text.empty()) return operand;
    if (text[0] == '{') {
      operand.kind = Operand::Kind::list;
      for (const std::string& part : split(text.substr(1, text.size() - 2), ','))
        operand.list.push_back(parse_operand(part));
    } else if (text[0] == '[') {
      operand = address(text);
    } else if (text[0] == '!') {
      operand = parse_operand(text.substr(1));
      operand.is_negated = true;
    } else if (const size_t bar = text.find('|'); bar != std::string::npos) {
      const std::string second = trim(text.substr(bar + 1));
      operand = parse_operand(text.substr(0, bar));
      operand.second = second == "_" ? -1 : register_named(second);
    } else {
      name_or_number(operand);
    }
    return operand;
  }

  void name_or_number(Operand& operand) {
    const std::string& text = operand.text;
    const auto* special = std::find_if(std::begin(kSpecials), std::end(kSpecials),
                                       [&](const SpecialName& each) { return each.name == text; });
    if (special != std::end(kSpecials)) {
      operand.kind = Operand::Kind::special;
      operand.index = static_cast<int>(special->special);
    } else if (text[0] == '$') {
      operand.kind = Operand::Kind::label;
    } else if (text[0] == '%' || text == "_" || registers_.contains(text)) {
      operand.kind = Operand::Kind::reg;
      operand.index = register_named(text);
    } else if (const auto value = number_of(text)) {
      operand.kind = Operand::Kind::immediate;
      operand.immediate = *value;
    } else {
      operand.kind = find_variable(text, operand) ? Operand::Kind::immediate : Operand::Kind::name;
    }
  }

  void instruction(std::string text) {
    Instruction made;
    made.line = line_;
    made.text = text;
    if (text[0] == '@') {
      const size_t end = text.find_first_of(" \t");
      made.predicate_is_negated = text[1] == '!';
      made.predicate =
          register_named(text.substr(made.predicate_is_negated ? 2 : 1, end - (made.predicate_is_negated ? 2 : 1)));
      text = trim(text.substr(end));
    }
    const size_t end = text.find_first_of(" \t\n");
    apply_opcode(made, words_of(text.substr(0, end)));
    const std::string rest = end == std::string::npos ? "" : trim(text.substr(end));
    if (text.starts_with("call")) {
      call_operands(made, split(rest, ','));
    } else {
      size_t count = 0;
      for (const std::string& part : split(rest, ',')) {
        if (count == made.operands.size()) refuse("'" + made.text + "' has too many operands");
        made.operands[count++] = parse_operand(part);
      }
    }
    function_.code.push_back(std::move(made));
  }

  void apply_opcode(Instruction& made, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const auto type = type_named(word);
      if (!type.has_value()) continue;
      if (made.type == Type::none) {
        made.type = *type;
      } else if (made.second == Type::none) {
        made.second = *type;
      }
    }
    const bool is_warp_barrier = words[0] == "bar" && words.size() > 1 && words[1] == "warp";
    const OpcodeRow* row = find_opcode(is_warp_barrier ? "bar.warp" : words[0], made.type);
    if (row == nullptr) refuse("'" + made.text + "' is not an instruction that the interpreter has");
    for (size_t i = 1; i < words.size(); ++i) {
      if (!type_named(words[i]).has_value() && !apply_modifier(made, words[0], words[i]))
        refuse("'." + words[i] + "' of '" + made.text + "' is not known");
    }
    made.handler = row->handler;
    made.flow = row->flow;
    made.mask_operand = row->mask_operand;
  }

  // call (result), name, (arguments)
  void call_operands(Instruction& made, const std::vector<std::string>& parts) {
    size_t at = 0;
    if (parts[at].starts_with('(')) made.operands[0] = parse_operand("{" + parts[at++].substr(1));
    made.operands[1].kind = Operand::Kind::name;
    made.operands[1].text = parts[at++];
    if (at < parts.size() && parts[at].starts_with('(')) made.operands[2] = parse_operand("{" + parts[at].substr(1));
  }

  void resolve_labels() {
    for (Instruction& each : function_.code) {
      line_ = each.line;
      for (Operand& operand : each.operands) {
        if (operand.kind != Operand::Kind::label) continue;
        const auto table = table_names_.find(operand.text);
        const auto label = labels_.find(operand.text);
        if (table == table_names_.end() && label == labels_.end()) refuse("there is no label " + operand.text);
        operand.index = table != table_names_.end() ? table->second : label->second;
      }
    }
    for (const std::vector<std::string>& table : tables_) {
      std::vector<int>& targets = function_.tables.emplace_back();
      for (const std::string& label : table) targets.push_back(labels_.at(label));
    }
  }

  Function& function_;
  Module& module_;
  int line_ = 1;
  std::string last_label_;
  std::map<std::string, int> registers_, labels_, shared_, local_, parameters_, table_names_;
  std::vector<std::vector<std::string>> tables_;
};

}  // namespace

void parse(Function& function) { FunctionParser(function).parse(); }

}  // namespace parallax::ptx
