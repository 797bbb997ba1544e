// SPDX-License-Identifier: Apache-2.0
// Requests to JSON, and answers of other people's programs from it: nothing in them is trusted.
#include "inspector/executors/foreign/conversation.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"

namespace parallax::foreign {
namespace {

using nlohmann::json;

constexpr double kDescribeLimitS = 120;
constexpr size_t kShownBytes = 200;

std::string text_of(const json& request) { return request.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// A time; nothing for what is none.
std::optional<double> milliseconds_in(const json& time) {
  if (!time.is_number() || !(time.get<double>() >= 0)) return std::nullopt;
  return time.get<double>();
}

ErrorCode code_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, ErrorCode>, 5> kErrorNames = {
      {{"usage", ErrorCode::usage},
       {"invalid_model", ErrorCode::invalid_model},
       {"unsupported", ErrorCode::unsupported},
       {"execution", ErrorCode::execution},
       {"out_of_memory", ErrorCode::out_of_memory}}};
  for (const auto& [known, code] : kErrorNames) {
    if (known == name) return code;
  }
  return ErrorCode::execution;
}

}  // namespace

Result<std::unique_ptr<Conversation>> Conversation::start(const std::string& executor, const std::string& command,
                                                          const CancelToken& cancel) {
  auto program = PX_TRY_CONTEXT(executor, Program::start(command));
  auto conversation = std::unique_ptr<Conversation>(new Conversation(executor, std::move(program)));
  PX_TRY(conversation->describe(cancel));
  conversation->program_->note_memory();
  return conversation;
}

// The answer to a request as an object, or the failure that it says.
Result<json> Conversation::ask(const json& request, const ProgramLimits& limits, const CancelToken& cancel) {
  has_refused_ = false;
  const std::string line = PX_TRY_CONTEXT(executor_, program_->ask(text_of(request), limits, cancel));
  json answer = json::parse(line, nullptr, false);
  if (!answer.is_object()) {
    program_->kill();
    return execution_error(fmt::format(
        "{}: it wrote '{}' on stdout, where one line of JSON, an object, is the answer to '{}'; print on stderr what "
        "people are to read{}",
        executor_, shorten(printable(line), kShownBytes), text_in(request, "request"), program_->last_lines()));
  }
  const auto failure = answer.find("error");
  if (failure == answer.end() || failure->is_null()) return answer;
  std::string message = failure->is_string() ? failure->get<std::string>() : text_of(*failure);
  if (message.empty()) message = "it failed and does not say why";
  has_refused_ = true;
  Error error = make_error(code_named(text_in(answer, "code")), one_safe_line(message));
  error.node = text_in(answer, "node");
  return std::move(error).with_context(executor_);
}

Status Conversation::describe(const CancelToken& cancel) {
  const json answer = PX_TRY(ask({{"request", "describe"}, {"protocol", 1}}, {kDescribeLimitS, 0}, cancel));
  description_ = {text_in(answer, "name"), text_in(answer, "version"), text_in(answer, "device"), {}, false};
  if (description_.name.empty()) description_.name = executor_;
  if (const auto settings = answer.find("settings"); settings != answer.end() && settings->is_object()) {
    for (const auto& [name, value] : settings->items())
      description_.settings[name] = value.is_string() ? value.get<std::string>() : text_of(value);
  }
  if (const auto observes = answer.find("observes"); observes != answer.end() && observes->is_boolean())
    description_.observes = observes->get<bool>();
  return {};
}

Status Conversation::load(const LoadRequest& request, const ProgramLimits& limits, const CancelToken& cancel) {
  const json line = {{"request", "load"},          {"model", request.model},
                     {"source", request.source},   {"optimize", request.optimize},
                     {"threads", request.threads}, {"seed", request.seed},
                     {"folder", request.folder},   {"memory_limit_bytes", request.memory_limit_bytes}};
  PX_TRY(ask(line, limits, cancel));
  return {};
}

Result<ProgramAnswer> Conversation::run(const ProgramRun& request, const ProgramLimits& limits,
                                        const CancelToken& cancel) {
  json line = {{"request", "run"},
               {"inputs", nullptr},
               {"data_set", request.data_set},
               {"wanted", request.wanted},
               {"answer", request.answer}};
  if (!request.inputs.empty()) line["inputs"] = request.inputs;
  if (request.wants_times) line["times"] = true;
  const json answer = PX_TRY(ask(line, limits, cancel));
  ProgramAnswer result;
  result.file = text_in(answer, "answer");
  if (result.file.empty())
    return execution_error(
        fmt::format("{}: its answer to 'run' has no text 'answer', the file with the values", executor_));
  if (const auto time = answer.find("milliseconds"); time != answer.end()) result.milliseconds = milliseconds_in(*time);
  if (const auto times = answer.find("node_milliseconds"); times != answer.end() && times->is_object()) {
    for (const auto& [node, time] : times->items()) {
      if (const auto known = milliseconds_in(time); known.has_value())
        result.node_milliseconds.emplace_back(node, *known);
    }
  }
  if (const auto notes = answer.find("notes"); notes != answer.end() && notes->is_array()) {
    for (const json& note : *notes) {
      if (note.is_string()) result.notes.push_back(one_safe_line(note.get<std::string>()));
    }
  }
  return result;
}

}  // namespace parallax::foreign
