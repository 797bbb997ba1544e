// SPDX-License-Identifier: Apache-2.0
// The kinds of programs, and the Executor around them.
#include "inspector/executors/foreign/foreign_executor.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "inspector/base/text.h"
#include "inspector/executors/foreign/foreign_session.h"
#include "inspector/executors/foreign/interpreter.h"

namespace parallax::foreign {
namespace {

// How a kind takes what follows its name and a colon.
enum class Argument : uint8_t { none, optional, required };

struct Kind {
  std::string_view name;
  Argument argument;
  std::string_view form;     // the executor's name with its argument
  std::string_view package;  // of Python, that the runner imports
};

constexpr std::array<Kind, 4> kRunners = {
    {{"onnxruntime", Argument::optional, "onnxruntime:PROVIDER", "onnxruntime"},
     {"torch", Argument::required, "torch:FILE.pt2 or torch:MODULE:FUNCTION", "torch"},
     {"openvino", Argument::optional, "openvino:DEVICE", "openvino"},
     {"tensorrt", Argument::none, "tensorrt", "tensorrt"}}};
constexpr std::string_view kCommand = "cmd:";

class ForeignExecutor final : public Executor {
 public:
  ForeignExecutor(const std::string& name, const std::string& command, const std::string& advice)
      : pool_(std::make_shared<ProgramPool>(name, command, advice)) {}

  std::string name() const override { return pool_->executor(); }

  std::string device() const override {
    const auto described = pool_->description();
    if (!described.ok()) return described.error().message;
    return described->device.empty() ? program_of(*described) : described->device;
  }

  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    const auto described = pool_->description(options.cancel);
    if (!described.ok()) return {{"error", described.error().message}};
    std::map<std::string, std::string> settings = described->settings;
    settings["program"] = program_of(*described);
    settings["optimize"] = keeps_graph(options) ? "off" : "on";
    return settings;
  }

  Status check_options(const RunOptions& options) const override {
    const std::string& name = pool_->executor();
    const auto refused = [&](std::string_view option, std::string_view instead) {
      return usage_error(fmt::format("{} is a program of its own, which {} does not reach: {}", name, option, instead));
    };
    if (options.tf32) return refused("--tf32", "leave it off, or give the program such an option of its own");
    if (options.accumulate != Accumulate::default_) return refused("--accumulate", "leave it at default");
    if (options.keep_casts) return refused("--keep-casts", "it is an option of reference:double");
    if (options.fallback != nullptr) return refused("--fallback", "leave it out; the program runs all nodes or none");
    if (!options.rewrite.changes.empty())
      return refused("a single pattern of --rewrite", "give --rewrite none or leave it at default");
    const auto base = options.rewrite.base;
    if (base != RewriteChoice::Base::default_ && base != RewriteChoice::Base::none)
      return refused("a set of patterns of --rewrite", "give --rewrite none or leave it at default");
    if (!options.overrides.empty())
      return usage_error(
          fmt::format("'{}' is overridden; {} is a program of its own, in which no value can be replaced",
                      options.overrides.begin()->first, name));
    if (!options.states.empty())
      return usage_error(
          fmt::format("'{}' is to be kept between runs; {} is a program of its own, which keeps nothing: "
                      "give it as an input",
                      options.states.front().input, name));
    return {};
  }

  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    PX_TRY(check_options(options));
    return ForeignSession::prepare(pool_, std::move(model), options);
  }

 private:
  static std::string program_of(const Description& described) {
    return described.version.empty() ? described.name : fmt::format("{} {}", described.name, described.version);
  }

  std::shared_ptr<ProgramPool> pool_;
};

// The text after the kind's name and a colon; nothing where the name is another one.
std::optional<std::string> argument_of(const Kind& kind, const std::string& name) {
  if (name == kind.name) return std::string();
  if (!name.starts_with(kind.name) || name[kind.name.size()] != ':') return std::nullopt;
  return name.substr(kind.name.size() + 1);
}

}  // namespace

std::vector<std::string> foreign_names() {
  std::vector<std::string> names = {std::string(kCommand)};
  for (const Kind& kind : kRunners)
    names.push_back(std::string(kind.name) + (kind.argument == Argument::required ? ":" : ""));
  return names;
}

Result<std::shared_ptr<Executor>> make_foreign_executor(const std::string& name) {
  const auto made = [&](const std::string& command, const std::string& advice) {
    return std::shared_ptr<Executor>(std::make_shared<ForeignExecutor>(name, command, advice));
  };
  if (name.starts_with(kCommand)) {
    const std::string command = name.substr(kCommand.size());
    if (command.find_first_not_of(' ') != std::string::npos) return made(command, "");
    return usage_error("cmd: names no command; write cmd:COMMAND, a command of /bin/sh that answers on its stdout");
  }
  for (const Kind& kind : kRunners) {
    const auto argument = argument_of(kind, name);
    if (!argument.has_value()) continue;
    const bool has_argument = name != kind.name;
    if (has_argument ? kind.argument == Argument::none || argument->empty() : kind.argument == Argument::required)
      return usage_error(fmt::format("there is no executor '{}'; write {}", name, kind.form));
    std::vector<std::string> arguments = {std::string(kind.name)};
    if (has_argument) arguments.push_back(*argument);
    const auto words = PX_TRY_CONTEXT(name, python_module("parallax.runners", arguments));
    return made(python_command(words), install_advice(words.front(), kPackage));
  }
  return usage_error(fmt::format("there is no executor '{}'", name));
}

std::vector<ForeignAvailability> examine_foreign_executors() {
  std::vector<ForeignAvailability> found = {
      {std::string(kCommand), true, "a command of yours that answers as FOREIGN.md says", ""}};
  const auto python = find_python();
  const auto packages = python.ok() ? packages_of(*python) : std::vector<std::string>();
  const auto has = [&](std::string_view package) { return std::ranges::find(packages, package) != packages.end(); };
  for (const Kind& kind : kRunners) {
    ForeignAvailability& row = found.emplace_back();
    row.name = kind.name;
    if (!python.ok()) {
      row.detail = python.error().message;
      continue;
    }
    const std::string_view missing = !has("parallax.runners") ? kPackage : !has(kind.package) ? kind.package : "";
    row.available = missing.empty();
    row.detail =
        missing.empty() ? fmt::format("runs on {}", *python) : fmt::format("'{}' has no package {}", *python, missing);
    if (!missing.empty()) row.advice = install_advice(*python, missing);
  }
  return found;
}

}  // namespace parallax::foreign
