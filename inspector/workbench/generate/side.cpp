// SPDX-License-Identifier: Apache-2.0
// Sessions and caches of one side.
#include "inspector/workbench/generate/side.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include <fmt/format.h>

#include "inspector/exec/executor_names.h"
#include "inspector/tensor/elements.h"
#include "inspector/transform/last_position.h"

namespace parallax::generate {
namespace {

// The caches that grow, where a session may keep them: their other dimensions are fixed.
std::vector<StateBinding> bindings_of(const ModelRoles& roles) {
  std::vector<StateBinding> bindings;
  for (size_t index = 0; index < roles.past.size(); ++index) {
    const CacheSlot& past = roles.past[index];
    if (past.is_cross) continue;
    for (size_t axis = 0; axis < past.dims.size(); ++axis) {
      const bool is_free = static_cast<int>(axis) == past.axis || axis == 0;
      if (!is_free && past.dims[axis] < 0) return {};
    }
    const int32_t present = roles.present_of_past[index];
    if (past.batch_axis != 0 || past.dims.empty() || present < 0) return {};
    bindings.push_back({past.name, roles.present[static_cast<size_t>(present)].name, past.axis});
  }
  return bindings;
}

TypeInfo type_of_slot(DType dtype) { return TypeInfo::tensor(dtype); }

// Each row's tokens without its padding, which follows them.
TokenRows padded_right(const TokenRows& tokens) {
  TokenRows result;
  for (size_t row = 0; row < tokens.ids.size(); ++row) {
    std::vector<int64_t>&ids = result.ids.emplace_back(), &mask = result.mask.emplace_back();
    for (const bool counts : {true, false}) {
      for (size_t index = 0; index < tokens.ids[row].size(); ++index) {
        if ((tokens.mask[row][index] != 0) != counts) continue;
        ids.push_back(tokens.ids[row][index]);
        mask.push_back(tokens.mask[row][index]);
      }
    }
  }
  return result;
}

// Logits of each row's last token. Without `last_tokens` that is the last position, which is the only one where the
// model was made so.
Result<ModelSide::Logits> last_logits(const Value& value, int64_t rows, const std::string& model,
                                      const std::vector<int64_t>& last_tokens) {
  const Shape shape = value.is_tensor() ? value.tensor().shape() : Shape{};
  const bool fits = value.is_tensor() && value.tensor().device().is_host() && is_floating(value.tensor().dtype()) &&
                    (shape.rank() == 3 || shape.rank() == 2) && shape[0] == rows && shape.element_count() > 0;
  if (!fits)
    return execution_error(
        fmt::format("the logits of '{}' are {}; they must be a float tensor [{}, length, vocabulary]", model,
                    value.is_absent() ? "absent" : to_string(type_of(value)), rows));
  const Tensor& tensor = value.tensor();
  const int64_t length = shape.rank() == 3 ? shape[1] : 1, vocabulary = shape[shape.rank() - 1];
  ModelSide::Logits logits;
  if (!last_tokens.empty() && length <= *std::ranges::max_element(last_tokens))
    return unsupported(fmt::format(
        "the logits of '{}' are those of {} positions, and the last token of a padded prompt is at position {}; the "
        "model must return the logits of all positions. Generate for one prompt after the other",
        model, length, *std::ranges::max_element(last_tokens)));
  logits.vocabulary = vocabulary;
  logits.values.resize(static_cast<size_t>(rows * vocabulary));
  std::vector<double> numbers(static_cast<size_t>(vocabulary));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = last_tokens.empty() ? length - 1 : last_tokens[static_cast<size_t>(row)];
    const int64_t begin = (row * length + position) * vocabulary;
    const auto target = logits.values.begin() + row * vocabulary;
    if (tensor.dtype() == DType::float32) {
      const auto source = tensor.as<float>().subspan(static_cast<size_t>(begin), static_cast<size_t>(vocabulary));
      std::ranges::copy(source, target);
    } else {
      load_doubles(tensor, begin, numbers);
      std::ranges::transform(numbers, target, [](double number) { return static_cast<float>(number); });
    }
  }
  return logits;
}

template <class T>
std::vector<T> reordered(const std::vector<T>& values, std::span<const int32_t> rows) {
  std::vector<T> result;
  for (const int32_t row : rows) result.push_back(values[static_cast<size_t>(row)]);
  return result;
}

TokenRows reordered(const TokenRows& tokens, std::span<const int32_t> rows) {
  return {reordered(tokens.ids, rows), reordered(tokens.mask, rows)};
}

}  // namespace

bool TokenRows::has_padding() const {
  return std::ranges::any_of(mask, [](const auto& row) { return std::ranges::find(row, 0) != row.end(); });
}

Result<std::unique_ptr<RunSide>> ModelSide::prepare_part(const Part& part, const std::string& executor,
                                                         const RunRequest& request,
                                                         const std::vector<StateBinding>& states,
                                                         bool last_position_only,
                                                         const ExecutorFactory& make_executor) {
  auto side = std::make_unique<RunSide>();
  side->executor = PX_TRY(make_executor(executor));
  side->options = options_for(request, executor);
  side->options.states = states;
  if (!request.fallback.empty() && !executor.starts_with("reference") && !is_foreign_executor(executor))
    side->options.fallback = PX_TRY(make_executor(request.fallback));
  std::shared_ptr<const Model> runs = part.model;
  if (last_position_only && part.roles.logits.has_value()) {
    const ValueId logits = part.model->graph.outputs[*part.roles.logits];
    const auto shorter = PX_TRY(transform::last_position(*part.model, value_at(part.model->graph, logits).name));
    if (shorter != nullptr) runs = shorter;
  }
  const auto start = std::chrono::steady_clock::now();
  side->session = PX_TRY_CONTEXT(part.model->path, side->executor->prepare(runs, side->options));
  side->prepare_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  side->info = describe_run(*side->executor, side->options, part.model);
  side->model = runs;
  return side;
}

Status ModelSide::prepare_stepping(const std::string& executor, const RunRequest& request, const SideOptions& options,
                                   const ExecutorFactory& make_executor) {
  const Part& part = model_->stepping();
  std::unique_ptr<RunSide>& target = model_->later.has_value() ? later_ : first_;
  const bool may_keep = options.cache == CacheMode::in_place || options.cache == CacheMode::automatic;
  const std::vector<StateBinding> states =
      may_keep && model_->has_cache() ? bindings_of(part.roles) : std::vector<StateBinding>();
  if (!states.empty()) {
    auto kept = prepare_part(part, executor, request, states, options.last_position_only, make_executor);
    const bool keeps = kept.ok() && dynamic_cast<SessionStates*>((*kept)->session.get()) != nullptr;
    if (keeps) {
      target = kept.take();
      cache_ = CacheMode::in_place;
      return {};
    }
    if (options.cache == CacheMode::in_place && !kept.ok()) return std::move(kept).error();
  }
  if (options.cache == CacheMode::in_place)
    return usage_error(fmt::format(
        "--cache in-place needs caches [batch, .., length, ..] whose other dimensions '{}' fixes, and an executor that "
        "keeps them, which {} {}; use --cache copy",
        part.path, executor, states.empty() ? "is not asked for these" : "does not"));
  target = PX_TRY(prepare_part(part, executor, request, {}, options.last_position_only, make_executor));
  cache_ = options.cache == CacheMode::none || !model_->has_cache() ? CacheMode::none : CacheMode::copy;
  return {};
}

Result<std::unique_ptr<ModelSide>> ModelSide::prepare(const LanguageModel& model, const std::string& executor,
                                                      const RunRequest& request, const SideOptions& options,
                                                      const ExecutorFactory& make_executor) {
  auto side = std::unique_ptr<ModelSide>(new ModelSide());
  side->model_ = &model;
  if (model.encoder.has_value())
    side->encoder_ = PX_TRY(side->prepare_part(*model.encoder, executor, request, {}, false, make_executor));
  PX_TRY(side->prepare_stepping(executor, request, options, make_executor));
  if (model.later.has_value()) {
    side->first_ =
        PX_TRY(side->prepare_part(model.first, executor, request, {}, options.last_position_only, make_executor));
    side->first_presents_ = pair_caches(model.later->roles.past, model.first.roles.present);
  }
  int32_t state = 0;
  for (const CacheSlot& slot : model.stepping().roles.past)
    side->state_of_slot_.push_back(side->cache_ == CacheMode::in_place && !slot.is_cross ? state++ : -1);
  return side;
}

int64_t ModelSide::peak_bytes() const {
  int64_t bytes = 0;
  for (const RunSide* side : {encoder_.get(), first_.get(), later_.get()})
    bytes += side == nullptr ? 0 : side->session->statistics().peak_bytes;
  return bytes;
}

double ModelSide::prepare_ms() const {
  double ms = 0;
  for (const RunSide* side : {encoder_.get(), first_.get(), later_.get()}) ms += side == nullptr ? 0 : side->prepare_ms;
  return ms;
}

SessionStates* ModelSide::states() const {
  if (cache_ != CacheMode::in_place) return nullptr;
  return dynamic_cast<SessionStates*>(stepping().session.get());
}

Status ModelSide::begin(const PromptBatch& batch) {
  step_ = past_ = 0;
  capacity_ = batch.capacity;
  tokens_ = batch.decoder;
  encoder_tokens_ = batch.encoder;
  prompt_of_.resize(static_cast<size_t>(batch.decoder.rows()));
  std::iota(prompt_of_.begin(), prompt_of_.end(), 0);
  encoder_states_ = Value();
  caches_.assign(model_->stepping().roles.past.size(), Value());
  if (SessionStates* kept = states(); kept != nullptr) return kept->reset_states(tokens_.rows(), capacity_);
  return {};
}

Result<ModelSide::Call> ModelSide::encoder_call() {
  StepState state;
  state.rows = encoder_tokens_.rows();
  state.length = encoder_tokens_.length();
  for (const auto& row : encoder_tokens_.ids) state.tokens.insert(state.tokens.end(), row.begin(), row.end());
  state.mask = encoder_tokens_.mask;
  encoder_->inputs = PX_TRY(make_feeds(*model_->encoder->model, model_->encoder->roles, state, {}, false));
  return Call{encoder_.get(), &*model_->encoder, {"encoder", -1}, true};
}

Status ModelSide::accept_encoder(const std::vector<Value>& outputs) {
  const TypeInfo declared = model_->encoder->model->graph.output_type(*model_->encoder->roles.hidden_states);
  encoder_states_ = round_to_declared(outputs[*model_->encoder->roles.hidden_states], declared);
  return {};
}

Result<ModelSide::Call> ModelSide::step_call(bool is_first) {
  const Part& part = is_first ? model_->first : model_->stepping();
  RunSide& run = is_first || later_ == nullptr ? *first_ : *later_;
  StepState state;
  state.rows = tokens_.rows();
  state.past = past_;
  state.length = tokens_.length() - past_;
  const bool moves_padding = model_->pads_right() && past_ == 0 && tokens_.has_padding();
  const TokenRows moved = moves_padding ? padded_right(tokens_) : TokenRows();
  const TokenRows& tokens = moves_padding ? moved : tokens_;
  for (const auto& row : tokens.ids) state.tokens.insert(state.tokens.end(), row.begin() + past_, row.end());
  state.mask = tokens.mask;
  last_tokens_.clear();
  for (size_t row = 0; moves_padding && row < tokens.mask.size(); ++row)
    last_tokens_.push_back(std::ranges::count(tokens.mask[row], 1) - 1);
  state.uses_cache = past_ > 0;
  state.encoder_states = encoder_states_;
  state.encoder_mask = encoder_tokens_.mask;
  const bool is_stepping = &run == &stepping();
  run.inputs = PX_TRY(make_feeds(*part.model, part.roles, state, past_ > 0 ? caches_ : std::vector<Value>(),
                                 is_stepping && cache_ == CacheMode::in_place));
  return Call{&run, &part, {model_->encoder.has_value() ? "decoder" : "", step_}, false};
}

Result<ModelSide::Call> ModelSide::first_call() { return step_call(true); }

Result<ModelSide::Call> ModelSide::next_call(std::span<const int64_t> tokens) {
  for (size_t row = 0; row < tokens.size(); ++row) {
    tokens_.ids[row].push_back(tokens[row]);
    tokens_.mask[row].push_back(1);
  }
  return step_call(past_ == 0);
}

Result<ModelSide::Logits> ModelSide::accept_step(const Call& call, const std::vector<Value>& outputs) {
  Logits logits = PX_TRY(last_logits(outputs[*call.part->roles.logits], tokens_.rows(), call.part->path, last_tokens_));
  if (cache_ != CacheMode::none) {
    PX_TRY(take_caches(past_ == 0, outputs));
    past_ = tokens_.length();
  }
  call.run->inputs.clear();
  ++step_;
  return logits;
}

Status ModelSide::take_caches(bool was_first, const std::vector<Value>& outputs) {
  const ModelRoles& stepping = model_->stepping().roles;
  const bool is_other = was_first && model_->later.has_value();
  const std::vector<int32_t>& pairs = is_other ? first_presents_ : stepping.present_of_past;
  const std::vector<CacheSlot>& presents = is_other ? model_->first.roles.present : stepping.present;
  for (size_t slot = 0; slot < caches_.size(); ++slot) {
    if (pairs[slot] < 0) continue;
    const bool is_kept = state_of_slot_[slot] >= 0;
    if (is_kept && !is_other) continue;
    Value value = round_to_declared(outputs[presents[static_cast<size_t>(pairs[slot])].index],
                                    type_of_slot(stepping.past[slot].dtype));
    // A branch that computes no keys of the encoder's states returns none, or empty ones.
    const bool is_empty = !value.is_tensor() || value.tensor().element_count() == 0;
    const bool is_other_batch =
        value.is_tensor() && value.tensor().shape().rank() > 0 && value.tensor().shape()[0] != tokens_.rows();
    if (stepping.past[slot].is_cross && !was_first && (is_empty || is_other_batch)) continue;
    if (is_kept) {
      PX_TRY(states()->set_state(static_cast<size_t>(state_of_slot_[slot]), value));
    } else {
      caches_[slot] = std::move(value);
    }
  }
  return {};
}

Status ModelSide::reorder(std::span<const int32_t> rows) {
  const std::vector<int32_t> prompts = reordered(prompt_of_, rows);
  const bool moves_prompts = prompts != prompt_of_;
  tokens_ = reordered(tokens_, rows);
  if (moves_prompts && model_->encoder.has_value()) {
    encoder_tokens_ = reordered(encoder_tokens_, rows);
    encoder_states_ = PX_TRY(gather_rows(encoder_states_, 0, rows));
  }
  if (SessionStates* kept = states(); kept != nullptr && past_ > 0) PX_TRY(kept->reorder_states(rows));
  const ModelRoles& roles = model_->stepping().roles;
  for (size_t slot = 0; slot < caches_.size(); ++slot) {
    if (caches_[slot].is_absent() || (roles.past[slot].is_cross && !moves_prompts)) continue;
    caches_[slot] = PX_TRY(gather_rows(caches_[slot], roles.past[slot].batch_axis, rows));
  }
  prompt_of_ = prompts;
  return {};
}

}  // namespace parallax::generate
