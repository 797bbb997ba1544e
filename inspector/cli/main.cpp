// SPDX-License-Identifier: Apache-2.0
// The program `parallax`: parses the command line, runs the verb, turns errors into one sentence and an exit code.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "inspector/base/input_files.h"
#include "inspector/base/program_start.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/base/text.h"
#include "inspector/cli/command.h"
#include "inspector/cli/console.h"
#include "inspector/cli/self_description.h"
#include "inspector/workbench/doctor/build_description.h"

namespace parallax::cli {
namespace {

struct Program {
  CLI::App app{"Parallax finds the first tensor at which two runs of an ONNX model diverge.", "parallax"};
  std::map<const CLI::App*, std::unique_ptr<Command>> commands;
  bool is_manual = false;  // shown before the rest is parsed
  std::string shell;
};

// A usage line has the forms of arguments: "A.plx B.plx | MODEL".
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    std::string form = option->get_type_name();
    if (form.empty() || form == "TEXT") form = option->get_name(true);
    const bool is_open = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
    if (is_open && !form.ends_with("...")) form += " ...";
    return option->get_required() ? form : fmt::format("[{}]", form);
  }
};

// The verbs, with the options of those among the arguments: the others cost half of the start.
void declare(Program& program, const std::vector<std::string>& arguments) {
  program.app.formatter(std::make_shared<HelpFormatter>());
  program.app.require_subcommand(1);
  program.app.set_version_flag("--version", [] { return build_description("parallax"); });
  program.app.add_option("--completion", program.shell, "print what makes a shell complete the program's arguments")
      ->type_name("bash|zsh|fish");
  program.app.add_flag("--manual", program.is_manual, "print the manual page");
  program.app.footer("parallax VERB --help shows a verb's options and an example.");
  for (const Verb& verb : verbs()) {
    CLI::App* app = program.app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    app->footer("Example:\n  " + std::string(verb.example));
    if (std::ranges::find(arguments, verb.name) == arguments.end()) continue;
    auto command = verb.make();
    command->declare(*app);
    program.commands[app] = std::move(command);
  }
}

// --completion and --manual, which need the options of all verbs; nothing where neither is asked for.
std::optional<Result<std::string>> describe_program(const std::vector<std::string>& arguments) {
  const bool is_manual = arguments.size() == 1 && arguments.front() == "--manual";
  const bool is_manual_of = arguments.size() == 2 && arguments.front() == "--manual-of";
  const bool is_completion = arguments.size() == 2 && arguments.front() == "--completion";
  if (is_manual_of) {
    const std::string help{std::istreambuf_iterator<char>(std::cin), {}};
    return manual_page_of(arguments.back(), help);
  }
  if (!is_manual && !is_completion) return std::nullopt;
  std::vector<DescribedVerb> described;
  for (const Verb& verb : verbs()) {
    CLI::App app{std::string(verb.summary), std::string(verb.name)};
    const auto command = verb.make();
    command->declare(app);
    described.push_back(describe_verb(app, verb.example));
  }
  return is_manual ? Result<std::string>(manual_page(described)) : completion(arguments.back(), described);
}

// Without a first word, and when it looks like a verb and is none.
std::optional<std::string> lacks_verb(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front().starts_with('-')) return std::nullopt;
  const std::span<const Verb> known = verbs();
  if (!arguments.empty() && std::ranges::find(known, arguments.front(), &Verb::name) != known.end())
    return std::nullopt;
  std::vector<std::string> list;
  for (const Verb& verb : known) list.emplace_back(verb.name);
  const std::string what = arguments.empty() ? "a verb is missing"
                                             : fmt::format("there is no verb '{}'{}", arguments.front(),
                                                           did_you_mean(arguments.front(), list));
  return fmt::format("{} (known: {}; parallax --help says what each does)", what, fmt::join(list, ", "));
}

// The short-lived memory of operators is mostly less than this in total: the program keeps it, since returning it and
// touching fresh pages again costs more than many operators' arithmetic. Large tensors have memory of their own.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMostKeptBytes = 16 << 20, kMostOfOneBytes = 4 << 20;
  ::mallopt(M_TRIM_THRESHOLD, kMostKeptBytes);
  ::mallopt(M_MMAP_THRESHOLD, kMostOfOneBytes);
#endif
}

// "--name=" without a value, which the parser would fill with the next argument.
std::optional<std::string> cut_off_option(const std::vector<std::string>& arguments) {
  const auto is_cut_off = [](const std::string& argument) {
    return argument.starts_with("--") && argument.size() > 3 && argument.find('=') == argument.size() - 1;
  };
  const auto found = std::ranges::find_if(arguments, is_cut_off);
  if (found == arguments.end()) return std::nullopt;
  return found->substr(0, found->size() - 1);
}

// The option or argument of the verb that was given an empty text: mostly a variable of a script that is not set, and
// not to be taken for an option that was left out. The parser gives one that may stand alone an empty text itself.
std::optional<std::string> empty_option(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_expected_min() == 0) continue;
    if (std::ranges::find(option->results(), "") != option->results().end()) return option->get_name();
  }
  return std::nullopt;
}

// Options and further arguments that the verb (or the program) does not have, as a sentence. Where an argument is
// missing, too, the parser tells of that alone.
std::optional<std::string> unknown_words(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  std::string names, alike;
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with('-') || word.size() < 2) continue;
    const std::string name = word.substr(0, word.find('='));
    names += (names.empty() ? "" : " ") + name;
    alike += did_you_mean(name, known);
  }
  if (!names.empty()) return fmt::format("there is no option {} of {}{}", names, app.get_name(), alike);
  if (app.remaining().empty()) return std::nullopt;
  return fmt::format("{} takes no further argument, and gets '{}'", app.get_name(), fmt::join(app.remaining(), "', '"));
}

// The help that lists what the parser missed: of the verb where there is one.
std::string see_help(const CLI::App& app) {
  const auto verbs_given = app.get_subcommands();
  return verbs_given.empty() ? " (see parallax --help)"
                             : fmt::format(" (see parallax {} --help)", verbs_given.front()->get_name());
}

Error refuse_empty(const std::string& name) {
  return usage_error(fmt::format("{} is given an empty text: give it a value, or leave it out", name));
}

// Names the inputs to the scope of the command, and checks the outputs. A folder among the files stays for the verb to
// judge, which knows what it writes there.
Status admit_files(const NamedFiles& files) {
  const auto is_named = [](const std::string& path) { return !path.empty(); };
  const bool writes =
      std::ranges::any_of(files.written, is_named) || std::ranges::any_of(files.written_folders, is_named);
  if (files.may_replace && !writes)
    return usage_error("--force lets files be replaced, and none is written: name an output, or leave it out");
  for (const std::string& path : files.read) input_files::note(path);
  for (const std::string& path : files.written) PX_TRY(admit_output(path));
  for (const std::string& path : files.written_folders) PX_TRY(admit_output_folder(path));
  return {};
}

int run(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "help") {  // "help run", as other programs have it
    arguments.erase(arguments.begin());
    arguments.resize(std::min<size_t>(arguments.size(), 1));
    arguments.emplace_back("--help");
  }
  Program program;
  declare(program, arguments);
  keep_command(arguments);
  const bool json = wants_json();
  if (const auto text = describe_program(arguments); text.has_value()) {
    if (!text->ok()) return report_error(text->error(), json);
    std::cout << **text;
    return std::cout.flush() ? 0 : report_error(io_error("cannot write to standard output"), false);
  }
  // The options are those of another program, which the parser does not know.
  const bool is_sweep = arguments.size() > 1 && arguments.front() == "sweep";
  if (is_sweep && arguments[1] != "-h" && arguments[1] != "--help") {
    const auto swept = run_sweep(std::span(arguments).subspan(1));
    return swept.ok() ? *swept : report_error(swept.error(), json);
  }
  if (const auto problem = lacks_verb(arguments)) return report_error(usage_error(*problem), json);
  if (const auto name = cut_off_option(arguments)) return report_error(refuse_empty(*name), json);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    program.app.parse(reversed);
  } catch (const CLI::Success& request) {  // --help, --version
    const int code = program.app.exit(request);
    if (!std::cout.flush()) return report_error(io_error("cannot write to standard output"), false);
    return code;
  } catch (const CLI::ParseError& error) {
    const auto verbs_given = program.app.get_subcommands();
    const CLI::App& app = verbs_given.empty() ? program.app : *verbs_given.front();
    const bool may_be_unknown = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr ||
                                dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const auto unknown = may_be_unknown ? unknown_words(app) : std::nullopt;
    return report_error(usage_error(unknown.value_or(error.what()) + see_help(program.app)), json);
  }
  const CLI::App* verb = program.app.get_subcommands().front();
  if (const auto name = empty_option(*verb)) return report_error(refuse_empty(*name), json);
  Command& command = *program.commands.at(verb);
  const NamedFiles files = command.files();
  const input_files::Scope scope(files.may_replace);
  if (const Status admitted = admit_files(files); !admitted.ok()) return report_error(admitted.error(), json);
  auto result = command.execute();
  if (!result.ok()) return report_error(result.error(), json);
  if (!flush_output()) return report_error(io_error("cannot write to standard output"), false);
  return *result;
}

}  // namespace
}  // namespace parallax::cli

int main(int argc, char** argv) {
  parallax::start_program(parallax::cli::report_end, parallax::cli::report_exhaustion);
  parallax::cli::keep_freed_memory();
  const int code = parallax::cli::run({argv + 1, argv + argc});
#ifndef PARALLAX_SANITIZED
  // Libraries are not asked to end: where memory is limited, a thread of OpenBLAS waits for its buffer, and its exit
  // for that thread. Leaks are looked for in the other build's exit.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}
