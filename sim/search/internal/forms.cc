// Compiles step plans once for all strategies that share their form (forms.h), for the Estimator.
#include "sim/search/internal/forms.h"

#include <algorithm>
#include <array>

#include "base/check.h"

#include "strategies/parallelism/layers.h"
#include "strategies/plan/planner.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::search {
namespace {

// Micro-batches per stage that fill a pipeline: usual schedules, others.
constexpr std::int64_t kFullPipeline = 2;
constexpr std::int64_t kFullOtherPipeline = 4;

// Sizes at which caches are cleared.
constexpr std::size_t kRememberedNodes = 50'000'000;  // nodes of shapes
constexpr std::size_t kRememberedFilled = 50'000;

// A form is settled after this many walks in a row, and this many changes of layout, without a new
// path.
constexpr std::int32_t kSettled = 8;
// The most steps between two walks.
constexpr std::int32_t kNotWalked = 16;
constexpr std::int32_t kMemberNotWalked = 4096;

// Whether shards of gradients are copied to the CPU as soon as they are made.
bool offloads_gradients(const Strategy& strategy) {
  return strategy.offload_optimizer == OptimizerOffload::kCpu;
}

// Gives all layers that differ only in their recomputation the same block.
void forget_recomputation(plan::PlannedModel& parts, const std::vector<LayerVariant>& variants) {
  for (plan::Unit& unit : parts.units) {
    if (!unit.is_layer) continue;
    const LayerVariant& own = variants[static_cast<std::size_t>(unit.block - 1)];
    const auto first = std::ranges::find_if(variants, [&](const LayerVariant& other) {
      return other.kind == own.kind && other.trained_before == own.trained_before;
    });
    unit.block = 1 + static_cast<std::int32_t>(first - variants.begin());
  }
}

}  // namespace

FilledForm::FilledForm(PlanForm& form, const Labels& labels, const TransferKinds& transfers)
    : form_(&form), labels_(&labels), transfers_(&transfers) {
  for (const StagePasses& passes : form.passes)
    live_sets_.push_back(search::live_sets_of(passes, labels));
}

std::vector<LiveSet> FilledForm::live_sets_of_stage(std::size_t stage) const {
  return search::live_sets_of(form_->passes_of_stages[stage], *labels_);
}

std::span<const TimedAction> FilledForm::timed_actions() {
  if (!timed_actions_.empty()) return timed_actions_;
  const auto works = form_->shape.works();
  timed_action_of_.reserve(works.size());
  for (const Work& work : works) {
    const TimedAction action = timed_action_of(work, *labels_, *transfers_);
    auto known = std::ranges::find(timed_actions_, action);
    if (known == timed_actions_.end()) known = timed_actions_.insert(known, action);
    timed_action_of_.push_back(static_cast<std::int32_t>(known - timed_actions_.begin()));
  }
  return timed_actions_;
}

void FilledForm::set_times(std::span<const double> times) {
  times_.clear();
  for (const std::int32_t action : timed_action_of_)
    times_.push_back(times[static_cast<std::size_t>(action)]);
}

Seconds FilledForm::around_passes(std::span<const double> times) {
  set_times(times);
  return form_->shape.around_passes(times_);
}

Seconds FilledForm::sum(std::span<const double> times) const {
  const std::vector<double> counts = form_->shape.counts();
  double sum = 0;
  for (std::size_t work = 0; work < counts.size(); ++work)
    sum += counts[work] * times[static_cast<std::size_t>(timed_action_of_[work])];
  return Seconds::from_base(sum);
}

Seconds FilledForm::walk(std::span<const double> times, const StrategyLayout& layout) {
  set_times(times);
  PlanForm& form = *form_;
  const std::size_t known = form.shape.paths();
  const Seconds step = form.shape.walk(times_);
  was_walked_ = true;
  if (form.shape.paths() > known) {
    form.walks_without_new_path = 0;
    form.walks_on_other_layouts = 0;
  } else {
    ++form.walks_without_new_path;
    if (form.walked_last != &layout) ++form.walks_on_other_layouts;
  }
  form.walked_last = &layout;
  form.not_walked = 0;
  return step;
}

bool FilledForm::is_settled(const StrategyLayout& layout) const {
  return was_walked_ && form_->walks_without_new_path >= kSettled &&
         form_->not_walked < kNotWalked &&
         (form_->walked_last == &layout || form_->walks_on_other_layouts >= kSettled);
}

bool FilledForm::is_walk_due(const StrategyLayout& layout) {
  PlanForm& form = *form_;
  const bool is_new = form.walks_without_new_path < kSettled ||
                      (form.walked_last != &layout && form.walks_on_other_layouts < kSettled);
  if (is_new ||
      form.not_walked >= std::min(kNotWalked * form.walks_without_new_path, kMemberNotWalked))
    return true;
  ++form.not_walked;
  return false;
}

std::span<const double> FilledForm::paths() {
  const std::size_t size = timed_actions_.size();
  for (; known_paths_ < form_->shape.paths(); ++known_paths_) {
    const auto path = form_->shape.path(known_paths_);
    paths_.resize(paths_.size() + size, 0);
    for (std::size_t work = 0; work < path.size(); ++work)
      paths_[known_paths_ * size + static_cast<std::size_t>(timed_action_of_[work])] += path[work];
  }
  return paths_;
}

Seconds FilledForm::longest_path(std::span<const double> times) {
  const std::size_t size = timed_actions_.size();
  ++form_->not_walked;
  paths();
  double most = 0;
  for (std::size_t path = 0; path < paths_.size(); path += size) {
    double length = 0;
    for (std::size_t i = 0; i < size; ++i) length += paths_[path + i] * times[i];
    most = std::max(most, length);
  }
  return Seconds::from_base(most);
}

void Forms::forget() {
  if (nodes_ > kRememberedNodes) {
    filled_.clear();
    forms_.clear();
    nodes_ = 0;
  }
  if (filled_.size() <= kRememberedFilled && labels_.size() <= kRememberedFilled) return;
  filled_.clear();
  labels_.clear();
}

Result<FilledForms*> Forms::of(const Strategy& strategy, StrategyLayout& layout,
                               const Numbered<Pattern>& pattern,
                               const Numbered<TransferKinds>& transfers) {
  FORESHARD_ASSIGN(NumberedForms* const known, form_of(strategy, layout, pattern));
  const std::array<std::int64_t, 5> key{known->number, cuts_.of(strategy.layers_per_stage),
                                        strategy.stages(), strategy.recompute_layers,
                                        transfers.second};
  if (const auto it = filled_.find(key); it != filled_.end()) return &it->second;
  const Labels& labels = labels_of(strategy).labels;
  FilledForms filled{.shared = &known->forms};
  for (PlanForm& form : known->forms.forms)
    filled.forms.emplace_back(form, labels, transfers.first);
  for (const StageClass& one : known->forms.classes.all)
    filled.of_classes.push_back(
        {.first_chunk = labels.counts(one.chunks.front()), .all = one.units(labels)});
  return &filled_.emplace(key, std::move(filled)).first->second;
}

std::int64_t Forms::variants_of(const Strategy& strategy) {
  return strategy.recompute_layers == 0 ? -1 : labels_of(strategy).variants;
}

Forms::NumberedLabels& Forms::labels_of(const Strategy& strategy) {
  const auto [it, added] = labels_.try_emplace(
      {cuts_.of(strategy.layers_per_stage), strategy.stages(), strategy.recompute_layers});
  NumberedLabels& known = it->second;
  if (!added) return known;
  const Layers layers = layers_of(model_, strategy);
  known.labels.add(0);
  for (const std::int32_t variant : layers.of_layer) known.labels.add(1 + variant);
  auto block = static_cast<std::int32_t>(layers.variants.size()) + 1;
  for (std::int64_t behind = 0; behind <= model_.multi_token_prediction; ++behind)
    known.labels.add(block++);
  std::vector<std::int64_t> numbers;
  for (const LayerVariant& one : layers.variants)
    numbers.insert(numbers.end(),
                   {static_cast<std::int64_t>(one.kind),
                    static_cast<std::int64_t>(one.recomputation.how), one.trained_before ? 1 : 0});
  known.variants = variants_.of(numbers);
  return known;
}

// Only plans of a few micro-batches are made: once a pipeline is full, each further period adds the
// same time.
Result<Forms::NumberedForms*> Forms::form_of(const Strategy& strategy, StrategyLayout& layout,
                                             const Numbered<Pattern>& pattern) {
  const std::int64_t schedule = schedules_.of(strategy.schedule);
  const bool is_usual = schedule::find_schedule(strategy.schedule)->may_block;
  const std::int64_t stages = strategy.pipeline_parallel;
  const std::int64_t period = strategy.virtual_stages > 1 || !is_usual ? stages : 1;
  const std::int64_t fewer = (is_usual ? kFullPipeline : kFullOtherPipeline) * stages;
  const std::int64_t micro_batches = strategy.micro_batches();
  const bool all = strategy.schedule == schedule::kCustom || micro_batches <= fewer + period;
  const std::array<std::int64_t, 4> numbers{
      strategy.virtual_stages, all ? micro_batches : 0, strategy.overlap_experts ? 1 : 0,
      2 * strategy.offload_activation_layers + (offloads_gradients(strategy) ? 1 : 0)};
  const std::array<std::int64_t, kOfForm> key{pattern.second,
                                              schedule,
                                              actions_.of(strategy.schedule_actions),
                                              pass_times_.of(strategy.pass_times),
                                              cuts_.of(strategy.layers_per_stage),
                                              numbers[0],
                                              numbers[1],
                                              numbers[2],
                                              numbers[3]};
  if (const auto it = forms_.find(key); it != forms_.end()) return &it->second;
  const SharedPlanForms::Key shared_key{.pattern = pattern.first,
                                        .schedule = strategy.schedule,
                                        .actions = strategy.schedule_actions,
                                        .pass_times = strategy.pass_times,
                                        .cut = strategy.layers_per_stage,
                                        .numbers = numbers};
  auto made = shared_.find(shared_key);
  if (made == nullptr) {
    PlanForms forms{.micro_batches = fewer, .period = period};
    FORESHARD_TRY(add_form(strategy, layout, all ? micro_batches : fewer, forms));
    if (!all) FORESHARD_TRY(add_form(strategy, layout, fewer + period, forms));
    made = std::make_shared<const PlanForms>(std::move(forms));
    shared_.add(shared_key, made);
  }
  for (const PlanForm& form : made->forms) nodes_ += form.shape.nodes();
  return &forms_.emplace(key, NumberedForms{.forms = *made, .number = next_form_++}).first->second;
}

Status Forms::add_form(const Strategy& strategy, StrategyLayout& layout, std::int64_t micro_batches,
                       PlanForms& forms) const {
  const Strategy shorter = with_equal_shares(strategy, micro_batches);
  const lower::LoweredModel& blocks = layout.blocks();
  plan::PlannedModel parts = lower::parts_of(model_, shorter, blocks);
  forget_recomputation(parts, layers_of(model_, strategy).variants);
  FORESHARD_ASSIGN(const auto plan, plan::make_plan(std::move(parts), shorter));
  const Framework& framework = *strategy.framework;
  StageClasses classes = classes_of(plan, layout.devices_of_stages());
  PlanForm form{.shape = {plan,
                          classes,
                          {.blocking_launches = framework.blocking_launches,
                           .norm = framework.gradient_clipping,
                           .copies_ahead = layout.copies_ahead()}},
                .passes = std::vector<StagePasses>(classes.all.size())};
  for (std::size_t stage = 0; stage < plan.roles.size(); ++stage) {
    const auto of_class = static_cast<std::size_t>(classes.of_stage[stage]);
    form.passes[of_class].add(form.passes_of_stages.emplace_back(passes_of(
        plan, plan.roles[stage], classes.all[of_class].first_like, framework.blocking_launches)));
  }
  forms.forms.push_back(std::move(form));
  forms.classes = std::move(classes);
  return {};
}

namespace {

constexpr std::size_t kSharedNodes = 100'000'000;  // nodes of shapes

}  // namespace

std::shared_ptr<const PlanForms> SharedPlanForms::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto known = forms_.find(key);
  return known == forms_.end() ? nullptr : known->second;
}

void SharedPlanForms::add(const Key& key, const std::shared_ptr<const PlanForms>& forms) {
  const std::lock_guard lock(mutex_);
  if (nodes_ > kSharedNodes) {
    forms_.clear();
    nodes_ = 0;
  }
  if (!forms_.try_emplace(key, forms).second) return;  // another thread was faster
  for (const PlanForm& form : forms->forms) nodes_ += form.shape.nodes();
}

}  // namespace foreshard::search
