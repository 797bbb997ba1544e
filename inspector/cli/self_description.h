// SPDX-License-Identifier: Apache-2.0
// The program's own description as a manual page and as completions of shells, made from the parsers of all verbs: what
// they say cannot differ from what the program takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"

namespace CLI {
class App;
}

namespace parallax::cli {

struct DescribedOption {
  std::vector<std::string> names;  // "-o", "--inputs"; of a positional argument its name alone
  std::string value;               // what it takes, as the help says it: "F.plx"; empty for a flag
  std::string description;
  bool is_required = false;
  bool may_repeat = false;
};

struct DescribedVerb {
  std::string name, summary, example;
  std::vector<DescribedOption> arguments;  // positional ones
  std::vector<DescribedOption> options;
};

// `app`: the parser of one verb, with all its options declared.
DescribedVerb describe_verb(const CLI::App& app, std::string_view example);

// A page of section 1 in man(7)'s macros.
std::string manual_page(std::span<const DescribedVerb> verbs);
// The page of another program, from the text of its --help: usage, paragraphs, and a line for each option.
std::string manual_page_of(std::string_view program, std::string_view help);

// The choices that stand in for a value's form ("EXEC[,EXEC]", "F.dot|F.svg", "none|all", "DIR") when a shell completes
// it.
struct ValueChoices {
  std::vector<std::string> words;    // literal ones, and the names of executors
  std::vector<std::string> endings;  // of files: "plx"
  bool is_list = false;              // words may be joined by commas
  bool takes_files = false;          // any file
  bool takes_folders = false;
};
ValueChoices choices_of(std::string_view value);

// "bash", "zsh" or "fish". Errors: usage.
Result<std::string> completion(std::string_view shell, std::span<const DescribedVerb> verbs);

}  // namespace parallax::cli
