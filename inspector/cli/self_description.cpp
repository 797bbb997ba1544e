// SPDX-License-Identifier: Apache-2.0
// Reads the parsers, and writes manual pages.
#include "inspector/cli/self_description.h"

#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "inspector/base/text.h"
#include "inspector/executors/make_executor.h"

namespace parallax::cli {
namespace {

// "N:2..1000000" -> "N": the parser adds the range of numbers.
std::string without_range(const std::string& type) {
  const size_t colon = type.rfind(':');
  if (colon == std::string::npos || type.find("..", colon) == std::string::npos) return type;
  return type.find_first_not_of("-0123456789.", colon + 1) == std::string::npos ? type.substr(0, colon) : type;
}

DescribedOption describe(const CLI::Option& option) {
  DescribedOption described;
  if (option.get_positional()) {
    described.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  }
  if (option.get_expected_min() > 0) described.value = without_range(option.get_type_name());
  if (described.value == "TEXT") described.value = option.get_positional() ? described.names.front() : "TEXT";
  described.description = option.get_description();
  described.is_required = option.get_required();
  described.may_repeat = option.get_expected_max() > 1;
  return described;
}

// Text of man(7): hyphens that are typed, backslashes, and no line that begins like a request.
std::string roff(std::string_view text) {
  std::string safe;
  for (const char character : text) {
    if (character == '\\') {
      safe += "\\e";
    } else if (character == '-') {
      safe += "\\-";
    } else if (character == '\n') {
      safe += ' ';
    } else {
      safe += character;
    }
  }
  return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
}

std::string heading(std::string_view program) {
  std::string title(program);
  std::ranges::transform(title, title.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return fmt::format(".TH {} 1 \"\" \"parallax {}\" \"User Commands\"\n", roff(title), PARALLAX_VERSION);
}

std::string item(const DescribedOption& option) {
  std::string text = ".TP\n";
  for (size_t index = 0; index < option.names.size(); ++index)
    text += fmt::format("{}\\fB{}\\fR", index == 0 ? "" : ", ", roff(option.names[index]));
  if (!option.value.empty() && option.value != option.names.front())
    text += fmt::format(" \\fI{}\\fR", roff(option.value));
  return text + fmt::format("\n{}\n", roff(option.description));
}

std::string synopsis_of(const DescribedVerb& verb) {
  std::string text = fmt::format("\\fBparallax {}\\fR", roff(verb.name));
  for (const DescribedOption& argument : verb.arguments) {
    const std::string value = roff(argument.value);
    text += argument.is_required ? fmt::format(" \\fI{}\\fR", value) : fmt::format(" [\\fI{}\\fR]", value);
  }
  return text + " [\\fIOPTIONS\\fR]";
}

std::string lower_word(std::string_view text) {
  const auto is_plain = [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '-' || letter == '_';
  };
  const bool is_word = !text.empty() && std::islower(static_cast<unsigned char>(text.front())) != 0 &&
                       std::ranges::all_of(text, is_plain);
  return is_word ? std::string(text) : std::string();
}

}  // namespace

DescribedVerb describe_verb(const CLI::App& app, std::string_view example) {
  DescribedVerb verb{app.get_name(), app.get_description(), std::string(example), {}, {}};
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? verb.arguments : verb.options).push_back(describe(*option));
  return verb;
}

std::string manual_page(std::span<const DescribedVerb> verbs) {
  std::string page = heading("parallax");
  page += ".SH NAME\nparallax \\- find the first tensor at which two runs of an ONNX model diverge\n.SH SYNOPSIS\n";
  for (const DescribedVerb& verb : verbs) page += synopsis_of(verb) + "\n.br\n";
  page +=
      ".SH DESCRIPTION\nResults go to standard output, messages and progress to standard error. An executor "
      "(\\fIEXEC\\fR) is one of ";
  std::string names;
  for (const std::string& executor : executor_names())
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(executor));
  page += names + ".\n.SH VERBS\n";
  for (const DescribedVerb& verb : verbs) {
    page += fmt::format(".SS {}\n{}\n.PP\n{}\n", roff(verb.name), roff(verb.summary), synopsis_of(verb));
    for (const DescribedOption& argument : verb.arguments) page += item(argument);
    for (const DescribedOption& option : verb.options) page += item(option);
    page += fmt::format(".PP\nExample:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(verb.example));
  }
  page += ".SH EXIT STATUS\n";
  constexpr std::pair<int, std::string_view> kEnds[] = {{0, "pass"},
                                                        {1, "diverged or inconclusive"},
                                                        {2, "usage"},
                                                        {3, "the model is invalid or unsupported"},
                                                        {4, "the execution failed"},
                                                        {5, "a file is unreadable, or input or output failed"}};
  for (const auto& [status, meaning] : kEnds) page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", status, meaning);
  page +=
      ".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nturns colors off\n.TP\n\\fBPARALLAX_ISA\\fR\n\\fBportable\\fR, "
      "\\fBavx2\\fR or \\fBavx512\\fR lowers the vector instructions that kernels use\n";
  return page + ".SH SEE ALSO\n\\fBparallax\\-gui\\fR(1)\n";
}

std::string manual_page_of(std::string_view program, std::string_view help) {
  std::string page = heading(program), options;
  std::vector<std::string> paragraphs = {""};
  for (const std::string_view line : split(help, '\n')) {
    if (line.starts_with("  ") && line.find_first_not_of(' ') != std::string_view::npos) {
      const std::string_view text = line.substr(line.find_first_not_of(' '));
      const size_t gap = text.find("  ");
      const std::string_view names = text.substr(0, gap);
      const size_t begin = gap == std::string_view::npos ? gap : text.find_first_not_of(' ', gap);
      options += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(names),
                             begin == std::string_view::npos ? "" : roff(text.substr(begin)));
    } else if (line.empty()) {
      if (!paragraphs.back().empty()) paragraphs.emplace_back();
    } else {
      paragraphs.back() += (paragraphs.back().empty() ? "" : " ") + std::string(line);
    }
  }
  const std::string summary = paragraphs.size() > 1 ? paragraphs[1] : "";
  page += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n", roff(program),
                      roff(summary.substr(0, summary.find_first_of(":."))), roff(paragraphs.front()));
  page += ".SH DESCRIPTION\n";
  for (size_t index = 1; index < paragraphs.size(); ++index)
    if (!paragraphs[index].empty()) page += fmt::format(".PP\n{}\n", roff(paragraphs[index]));
  return page + ".SH OPTIONS\n" + options + ".SH SEE ALSO\n\\fBparallax\\fR(1)\n";
}

ValueChoices choices_of(std::string_view value) {
  ValueChoices choices;
  if (value.find("EXEC") != std::string_view::npos) {
    choices.words = executor_names();
    choices.is_list = value.find(',') != std::string_view::npos;
    return choices;
  }
  std::string parts(value);
  std::ranges::replace(parts, ' ', '|');
  for (std::string_view part : split(parts, '|')) {
    if (part.starts_with('[')) part.remove_prefix(1);
    if (part.ends_with(']')) part.remove_suffix(1);
    part = part.substr(part.rfind('=') == std::string_view::npos ? 0 : part.rfind('=') + 1);
    const size_t dot = part.rfind('.');
    const bool is_file = dot != std::string_view::npos && dot > 0 && !lower_word(part.substr(dot + 1)).empty() &&
                         std::isupper(static_cast<unsigned char>(part[dot - 1])) != 0;
    if (is_file) {
      choices.endings.emplace_back(part.substr(dot + 1));
    } else if (part == "MODEL") {
      for (const char* ending : {"onnx", "textproto", "pbtxt"}) choices.endings.emplace_back(ending);
    } else if (part == "DUMP") {
      choices.endings.emplace_back("plx");
    } else if (part.starts_with("DIR")) {
      choices.takes_folders = true;
    } else if (part == "F" || part == "FILE" || part == "FILES" || part == "PATH" || part == "ORIGIN" ||
               part == "DEST") {
      choices.takes_files = true;
    } else if (const std::string word = lower_word(part); !word.empty()) {
      choices.words.push_back(word);
    }
  }
  return choices;
}

}  // namespace parallax::cli
