// Lists the strategies that a search looks at (space.h), for internal/candidates.cc; a study's
// `space` narrows them. A strategy that the framework cannot express is left out with a reason.
#include "sim/search/space.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "base/record/record.h"

#include "sim/search/shares.h"
#include "strategies/launch/abilities.h"
#include "strategies/schedule/schedule.h"

namespace foreshard {

const record::Record<Strategy>& record_of(const Strategy*) {
  const auto if_any_is_offloaded = [](auto member) {
    return [member](const Strategy& of) {
      return of.offloads() ? std::optional(of.*member) : std::nullopt;
    };
  };
  static const auto record =
      record::Record<Strategy>("strategy", "Keys of a strategy's file that a search may change.")
          .field("tensor_parallel", &Strategy::tensor_parallel)
          .field("pipeline_parallel", &Strategy::pipeline_parallel)
          .field("context_parallel", &Strategy::context_parallel)
          .field("context_exchange", &Strategy::context_exchange)
          .field("context_heads", &Strategy::context_heads)
          .field("data_parallel", &Strategy::data_parallel)
          .field("expert_parallel", &Strategy::expert_parallel)
          .field("expert_tensor_parallel", &Strategy::expert_tensor_parallel,
                 "0: same as tensor_parallel.")
          .field("token_dispatcher", &Strategy::token_dispatcher)
          .field("overlap_experts", &Strategy::overlap_experts)
          .field("sequence_parallel", &Strategy::sequence_parallel)
          .field("rank_order", &Strategy::rank_order)
          .field("schedule", &Strategy::schedule)
          .field("virtual_stages", &Strategy::virtual_stages)
          .field("layers_per_stage", &Strategy::layers_per_stage, "Empty: equal.")
          .field("micro_batch", &Strategy::micro_batch)
          .field("global_batch", &Strategy::global_batch)
          .field("recompute", &Strategy::recompute)
          .field("recompute_parts", &Strategy::recompute_parts, "Read if it is selective.")
          .field("recompute_layers", &Strategy::recompute_layers, "Number per stage; 0: all.")
          .field("zero_stage", &Strategy::zero_stage)
          .field("shard_replicas", &Strategy::shard_replicas)
          .field("batch_shares", &Strategy::batch_shares,
                 "Micro-batches of data-parallel ranks; empty: equal.")
          .sometimes("offload_activation_layers",
                     if_any_is_offloaded(&Strategy::offload_activation_layers),
                     "Left out, like the next two, where nothing is on the hosts.")
          .sometimes("offload_optimizer", if_any_is_offloaded(&Strategy::offload_optimizer))
          .sometimes("offload_parameters", if_any_is_offloaded(&Strategy::offload_parameters));
  return record;
}

}  // namespace foreshard

namespace foreshard::search {
namespace {

// What a level tries; sizes are powers of two unless `divisors`.
struct Level {
  std::int64_t largest_micro_batch;
  std::int64_t largest_virtual_stages;
  bool divisors;
  std::vector<Recompute> recompute;
  std::vector<std::int64_t> zero_with_pipeline;
  std::vector<std::int64_t> zero_without;
  bool also_without_sequence_parallel;
  std::vector<std::vector<std::string>> rank_orders;  // tried besides the study's
};

const Level& level_of(std::int64_t level) {
  static const std::vector<std::vector<std::string>> usual{{"tensor", "data", "pipeline"},
                                                           {"tensor", "pipeline", "data"}};
  static const std::vector<std::vector<std::string>> all{
      {"tensor", "data", "pipeline"}, {"tensor", "pipeline", "data"},
      {"data", "tensor", "pipeline"}, {"pipeline", "tensor", "data"},
      {"data", "pipeline", "tensor"}, {"pipeline", "data", "tensor"}};
  static const Level levels[] = {
      {4, 1, false, {Recompute::kSelective, Recompute::kFull}, {1}, {1, 3}, false, {}},
      {4, 4, false, {Recompute::kSelective, Recompute::kFull}, {1}, {1, 3}, false, {}},
      {16,
       16,
       false,
       {Recompute::kNone, Recompute::kSelective, Recompute::kFull},
       {0, 1},
       {0, 1, 2, 3},
       false,
       usual},
      {64,
       64,
       true,
       {Recompute::kNone, Recompute::kSelective, Recompute::kFull},
       {0, 1},
       {0, 1, 2, 3},
       true,
       all},
  };
  return levels[std::clamp<std::int64_t>(level, 0, 3)];
}

std::vector<std::int64_t> divisors_of(std::int64_t n, std::int64_t largest, bool all) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= std::min(n, largest); ++d) {
    if (n % d == 0 && (all || std::has_single_bit(static_cast<std::uint64_t>(d))))
      divisors.push_back(d);
  }
  return divisors;
}

template <class T>
bool allows(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
}

template <class T>
std::vector<T> chosen(const std::vector<T>& wanted, std::vector<T> otherwise) {
  if (wanted.empty()) return otherwise;
  std::vector<T> once;  // a value that is named twice is tried once
  for (const T& value : wanted)
    if (std::ranges::find(once, value) == once.end()) once.push_back(value);
  return once;
}

class Enumerator {
 public:
  Enumerator(const SearchSpace& space, const Strategy& base, const Model& model,
             std::int64_t devices, std::span<const std::int64_t> fewer,
             const std::function<bool()>& stop)
      : space_(space),
        level_(level_of(space.level)),
        uneven_(is_uneven(space)),
        strategy_(base),
        model_(model),
        devices_(devices),
        fewer_(fewer),
        stop_(stop) {
    strategy_.layers_per_stage.clear();
    strategy_.batch_shares.clear();
    strategy_.recompute_layers = 0;
  }

  Enumeration run() && {
    for (const std::int64_t tensor :
         sizes(space_.tensor_parallel, std::max<std::int64_t>(model_.heads, 1))) {
      // A pipeline over encoder and decoder is not modelled.
      for (const std::int64_t pipeline :
           sizes(space_.pipeline_parallel, model_.encoder ? 1 : model_.layers)) {
        strategy_.tensor_parallel = tensor;
        strategy_.pipeline_parallel = pipeline;
        for (const std::int64_t context : contexts()) {
          strategy_.context_parallel = context;
          strategy_.context_exchange = context > 1 ? exchange_ : ContextExchange::kAllGather;
          strategy_.context_heads = context > 1 ? context_heads_ : 1;
          for (const std::int64_t data : replicas()) {
            if (!result_.is_whole || (stop_ && stop_())) {
              result_.is_whole = false;
              return std::move(result_);
            }
            strategy_.data_parallel = data;
            orders();
          }
        }
      }
    }
    return std::move(result_);
  }

 private:
  // The wanted sizes. If none are named: the divisors of the number of devices and of `parts`, the
  // heads or layers that the model has to split.
  std::vector<std::int64_t> sizes(const std::vector<std::int64_t>& wanted,
                                  std::int64_t parts) const {
    std::set<std::int64_t> found(wanted.begin(), wanted.end());
    if (wanted.empty()) {
      for (const std::int64_t whole : {devices_, space_.idle ? parts : 1})
        for (const std::int64_t size : divisors_of(whole, devices_, true)) found.insert(size);
    }
    return {found.begin(), found.end()};
  }

  // The numbers of replicas for these tensor, pipeline and context ranks: each number that is named
  // and possible; if none are named, the largest possible on all devices and on each smaller number
  // of devices.
  std::vector<std::int64_t> replicas() const {
    const std::int64_t ranks =
        strategy_.tensor_parallel * strategy_.pipeline_parallel * strategy_.context_parallel;
    const std::int64_t room = devices_ / ranks;  // limits_of(): their product is below 2^63
    const bool divides = devices_ % ranks == 0 && allows(space_.data_parallel, room);
    // Sizes that leave devices over are skipped without a count where they do not suit the model.
    const bool suits = model_.heads % strategy_.tensor_parallel == 0 &&
                       model_.layers >= strategy_.pipeline_parallel &&
                       (uneven_ || model_.layers % strategy_.pipeline_parallel == 0);
    std::vector<std::int64_t> found;
    const auto add = [&](std::int64_t data) {
      if (data > 0 && std::ranges::find(found, data) == found.end()) found.push_back(data);
    };
    if (!space_.data_parallel.empty()) {
      for (std::int64_t data = room; data > 0 && space_.idle && suits; --data)
        if (allows(space_.data_parallel, data) && (divides_batch(data) || may_share(data)))
          add(data);
      if (found.empty() && divides) add(room);
      return found;
    }
    for (const std::int64_t equal : filled(room, suits && space_.idle)) add(equal);
    if (found.empty() && divides) add(room);
    if (!space_.idle || !suits) return found;
    for (const std::int64_t devices : fewer_)
      for (const std::int64_t data : filled(devices / ranks, true)) add(data);
    return found;
  }

  bool divides_batch(std::int64_t data) const { return strategy_.global_batch % data == 0; }
  // Whether some of `data` ranks may take larger shares of the batch than others.
  bool may_share(std::int64_t data) const {
    return space_.uneven && space_.unequal_shares && data > 1 && data < strategy_.global_batch;
  }
  // The most replicas, up to `room`, over which the batch divides; before it `room` itself, where
  // the largest share of the batch is then smaller.
  std::vector<std::int64_t> filled(std::int64_t room, bool may_leave_over) const {
    if (!may_leave_over || room < 1) return {};
    std::int64_t equal = room;
    while (!divides_batch(equal)) --equal;
    const std::int64_t batch = strategy_.global_batch;
    if (may_share(room) && (batch + room - 1) / room < batch / equal) return {room, equal};
    return {equal};
  }

  std::vector<std::int64_t> contexts() const {
    const std::int64_t most = std::max<std::int64_t>(model_.sequence / kTokensOfRank, 1);
    return chosen(space_.context_parallel,
                  divisors_of(model_.sequence, std::min(most, devices_), false));
  }

  // Tries the orders of ranks; orders that differ only in axes of one rank are tried once.
  void orders() {
    std::vector<std::vector<std::string>> wanted = space_.rank_order;
    if (wanted.empty()) {
      wanted.push_back(rank_order_);
      if (!fewer_.empty())
        wanted.insert(wanted.end(), level_.rank_orders.begin(), level_.rank_orders.end());
    }
    std::set<std::vector<std::string>> known;
    for (const std::vector<std::string>& order : wanted) {
      std::vector<std::string> matters;
      for (const std::string& axis : order) {
        const std::int64_t size = axis == "tensor"     ? strategy_.tensor_parallel
                                  : axis == "pipeline" ? strategy_.pipeline_parallel
                                                       : strategy_.copies();
        if (size > 1) matters.push_back(axis);
      }
      if (!known.insert(std::move(matters)).second) continue;
      strategy_.rank_order = order;
      experts();
    }
  }

  // Tries divisions of the experts among tensor, context and data ranks, with each expert split
  // over tensor ranks or whole.
  void experts() {
    strategy_.expert_parallel = 1;
    strategy_.expert_tensor_parallel = 0;
    strategy_.token_dispatcher = TokenDispatcher::kAllToAll;
    strategy_.overlap_experts = false;
    if (model_.experts == 0) return chunks();
    const std::int64_t ranks = strategy_.tensor_parallel * strategy_.copies();
    const auto ways = divisors_of(model_.experts, ranks, level_.divisors);
    const bool is_split = strategy_.tensor_parallel > 1;
    for (const std::int64_t size : chosen(space_.expert_parallel, ways)) {
      for (const std::int64_t split :
           chosen(space_.expert_tensor_parallel,
                  is_split ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{0})) {
        strategy_.expert_parallel = size;
        strategy_.expert_tensor_parallel = split;
        for (const TokenDispatcher how : dispatchers()) {
          strategy_.token_dispatcher = how;
          for (const bool overlap : overlaps()) {
            strategy_.overlap_experts = overlap;
            chunks();
          }
        }
      }
    }
  }

  std::vector<TokenDispatcher> dispatchers() const {
    if (strategy_.expert_parallel == 1) return {TokenDispatcher::kAllToAll};  // no tokens travel
    return chosen(space_.token_dispatcher, {token_dispatcher_});
  }
  std::vector<bool> overlaps() const {
    if (strategy_.expert_parallel == 1) return {false};
    if (space_.overlap_experts) return {*space_.overlap_experts};
    return overlap_experts_ ? std::vector<bool>{true, false} : std::vector<bool>{false};
  }

  void chunks() {
    strategy_.schedule_actions.clear();
    strategy_.schedule_file.clear();
    strategy_.pass_times.clear();
    for (const std::int64_t count : chosen(space_.virtual_stages, chunk_counts())) {
      strategy_.virtual_stages = count;
      strategy_.layers_per_stage.clear();
      if (!space_.layers_per_stage.empty())
        strategy_.layers_per_stage = space_.layers_per_stage;
      else if (uneven_ && model_.layers % strategy_.stages() != 0)
        strategy_.layers_per_stage = even_split(model_.layers, strategy_.stages());
      for (const std::string& name :
           chosen(space_.schedule, {count > 1 ? "interleaved" : "1f1b"})) {
        if (!suits(name, count)) continue;
        strategy_.schedule = name;
        micro_batches();
      }
    }
  }

  // Numbers of chunks per stage: powers of two; at the highest level, also the fewest chunks for
  // each length of the longest piece. Where stages must be equal, only numbers that divide the
  // layers.
  std::vector<std::int64_t> chunk_counts() const {
    std::vector<std::int64_t> counts{1};
    const std::int64_t stages = strategy_.pipeline_parallel;
    if (stages == 1) return counts;
    const auto longest_piece = [&](std::int64_t pieces) {
      return (model_.layers + pieces - 1) / pieces;
    };
    const std::int64_t most = std::min(level_.largest_virtual_stages, model_.layers / stages);
    for (std::int64_t count = 2; count <= most; ++count) {
      const std::int64_t pieces = stages * count;
      const bool is_shorter = longest_piece(pieces) < longest_piece(pieces - stages);
      const bool is_tried =
          std::has_single_bit(static_cast<std::uint64_t>(count)) || (level_.divisors && is_shorter);
      if (is_tried && (uneven_ || model_.layers % pieces == 0)) counts.push_back(count);
    }
    return counts;
  }

  bool suits(const std::string& name, std::int64_t chunks) const {
    const schedule::Schedule* known = schedule::find_schedule(name);
    return known != nullptr && known->fewest_chunks <= chunks && chunks <= known->most_chunks &&
           (strategy_.pipeline_parallel >= known->fewest_stages);
  }

  void micro_batches() {
    const std::int64_t batch = strategy_.global_batch;
    const std::int64_t data = strategy_.data_parallel;
    const std::int64_t per_replica = std::max<std::int64_t>(batch / data, 1);
    const bool shares = !divides_batch(data) && may_share(data);
    const auto sizes =
        divisors_of(shares ? batch : per_replica, std::min(level_.largest_micro_batch, per_replica),
                    level_.divisors);
    for (const std::int64_t size : chosen(space_.micro_batch, sizes)) {
      strategy_.micro_batch = size;
      strategy_.batch_shares.clear();
      if (shares)
        strategy_.batch_shares =
            even_shares(batch / size, data,
                        strategy_.schedule == "interleaved" ? strategy_.pipeline_parallel : 1);
      for (const Recompute recompute : chosen(space_.recompute, recomputations())) {
        strategy_.recompute = recompute;
        strategy_.recompute_parts =
            recompute == Recompute::kSelective ? recompute_parts_ : usual_recompute_parts();
        zero_stages();
      }
    }
  }

  // The recomputations to try. Selective recomputation becomes none for models without attention
  // (unless parts are named), and for frameworks that can only recompute whole layers.
  std::vector<Recompute> recomputations() const {
    std::vector<Recompute> kinds = level_.recompute;
    const bool can_select =
        space_.any_framework ||
        launch::can_recompute(*strategy_.framework, {Recompute::kSelective, recompute_parts_},
                              /*some_layers=*/false);
    const bool is_apart =
        model_.has_mixer(Mixer::kAttention) || recompute_parts_ != usual_recompute_parts();
    if (is_apart && can_select) return kinds;
    std::ranges::replace(kinds, Recompute::kSelective, Recompute::kNone);
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    return kinds;
  }

  void zero_stages() {
    const bool pipeline = strategy_.pipeline_parallel > 1;
    const auto& usual = pipeline ? level_.zero_with_pipeline : level_.zero_without;
    for (const std::int64_t stage : chosen(space_.zero_stage, usual)) {
      // Ranks that share gradients or parameters must take equal numbers of micro-batches.
      if (!strategy_.batch_shares.empty() && stage >= 2 && space_.zero_stage.empty()) continue;
      if (pipeline && stage >= 2) {
        ++result_.considered;
        ++result_.misfits["zero_stage"];
        continue;
      }
      // Without replicas there is nothing to share: all stages are stage 0.
      strategy_.zero_stage = strategy_.copies() == 1 ? 0 : stage;
      for (const std::int64_t sets : sets_of_shards()) {
        strategy_.shard_replicas = sets;
        sequence_parallel();
      }
      if (strategy_.copies() == 1) break;
    }
  }

  std::vector<std::int64_t> sets_of_shards() const {
    if (strategy_.zero_stage == 0) return {1};
    if (!space_.shard_replicas.empty()) return space_.shard_replicas;
    std::vector<std::int64_t> sets{shard_replicas_};
    if (shard_replicas_ > 1 || space_.level < 2 || strategy_.zero_stage < 3 || fewer_.empty())
      return sets;
    const std::int64_t within_node = fewer_.front() / strategy_.tensor_parallel;
    if (within_node > 1 && strategy_.copies() % within_node == 0 &&
        strategy_.data_parallel % (strategy_.copies() / within_node) == 0)
      sets.push_back(strategy_.copies() / within_node);
    if (sets.back() == 1) sets.resize(1);
    return sets;
  }

  void sequence_parallel() {
    if (strategy_.tensor_parallel == 1) {
      strategy_.sequence_parallel = false;
      add();
      return;
    }
    if (space_.sequence_parallel.value_or(true)) {
      strategy_.sequence_parallel = true;
      add();
    }
    const bool also_without = level_.also_without_sequence_parallel || !can_split_sequence();
    if (!space_.sequence_parallel.value_or(!also_without)) {
      strategy_.sequence_parallel = false;
      add();
    }
  }

  bool can_split_sequence() {
    strategy_.sequence_parallel = true;
    const auto cannot = limitation_in(strategy_, model_, space_);
    return !cannot || cannot->key != "sequence_parallel";
  }

  void add() {
    ++result_.considered;
    if (strategy_.stages() > model_.layers) {
      ++result_.misfits["pipeline_parallel"];
      return;
    }
    const auto faults = faults_in(strategy_, model_, devices_);
    if (!faults.empty()) {
      ++result_.misfits[faults.front().key];
      return;
    }
    if (const auto cannot = limitation_in(strategy_, model_, space_)) {
      ++result_.misfits[std::string(kFrameworkMisfit)];
      return;
    }
    if (strategy_.schedule == "interleaved" &&
        strategy_.micro_batches() % strategy_.pipeline_parallel != 0) {
      ++result_.misfits["virtual_stages"];
      return;
    }
    result_.most_devices = std::max(result_.most_devices, strategy_.devices());
    result_.candidates.push_back(strategy_);
  }

  const SearchSpace& space_;
  const Level& level_;
  bool uneven_;
  Strategy strategy_;
  std::vector<std::string> rank_order_ = strategy_.rank_order;
  TokenDispatcher token_dispatcher_ = strategy_.token_dispatcher;
  bool overlap_experts_ = strategy_.overlap_experts;
  std::int64_t shard_replicas_ = strategy_.shard_replicas;  // used where states are sharded
  ContextExchange exchange_ = strategy_.context_exchange;
  std::int64_t context_heads_ = strategy_.context_heads;
  std::vector<foreshard::LayerPart> recompute_parts_ =
      strategy_.recompute_parts;  // used where recomputation is selective
  const Model& model_;
  std::int64_t devices_;
  std::span<const std::int64_t> fewer_;
  const std::function<bool()>& stop_;
  Enumeration result_;
};

}  // namespace

Enumeration enumerate(const SearchSpace& space, const Strategy& base, const Model& model,
                      std::int64_t devices, std::span<const std::int64_t> fewer,
                      const std::function<bool()>& stop) {
  return Enumerator(space, base, model, devices, fewer, stop).run();
}

nlohmann::ordered_json knobs_of(const Strategy& strategy) {
  return record::write(strategy);
}

std::string in_words(const Strategy& strategy) {
  std::string text = describe(strategy);
  if (!strategy.layers_per_stage.empty())
    text += fmt::format(", layers {}", fmt::join(strategy.layers_per_stage, " "));
  if (strategy.schedule != "1f1b" && strategy.schedule != "interleaved")
    text += ", " + strategy.schedule;
  const bool apart = strategy.pipeline_parallel > 1 || strategy.copies() > 1;
  if (apart && strategy.rank_order != Strategy{}.rank_order)
    text += fmt::format(", ranks by {}", fmt::join(strategy.rank_order, ", "));
  return text;
}

std::string_view misfit_text(std::string_view key) {
  if (key == kFrameworkMisfit) return "the framework cannot run it (--any-framework tries it)";
  if (key == "tensor_parallel") return "heads or matrices do not divide over the tensor ranks";
  if (key == "pipeline_parallel") return "there are more stages than layers, or no equal ones";
  if (key == "global_batch") return "the batch does not divide over replicas and micro-batches";
  if (key == "virtual_stages")
    return "interleaving needs a multiple of the stages as micro-batches";
  if (key == "sequence_parallel") return "the sequence does not divide over the tensor ranks";
  if (key == "context_parallel") return "the sequence or its heads do not divide over the ranks";
  if (key == "context_heads")
    return "the ranks or the heads do not divide over groups that exchange heads";
  if (key == "expert_parallel" || key == "expert_tensor_parallel")
    return "the ranks do not divide into those that share the experts";
  if (key == "zero_stage") return "no framework offers ZeRO 2 or 3 with a pipeline";
  if (key == "recompute_parts") return "no layer has the part that is to be computed again";
  if (key == "overlap_experts") return "the schedule pairs no passes of this kind";
  if (key == "token_dispatcher") return "the dispatcher does not do that division of experts";
  if (key == "batch_shares")
    return "ranks that meet in each micro-batch cannot take unequal shares of the batch";
  if (key == "layers_per_stage") return "that cut has other pieces or layers";
  if (key == "schedule") return "the schedule does not do so many stages or micro-batches";
  if (key.starts_with("offload_")) return "what the study offloads does not go with the split";
  if (key == "shard_replicas") return "data-parallel ranks do not divide into the sets of shards";
  return "a tensor cannot be split that way";
}

// Which strategies of a space are offered: those that the framework can run, and those that the
// space names.

std::optional<launch::Limitation> limitation_in(const Strategy& strategy, const Model& model,
                                                const SearchSpace& space) {
  if (space.any_framework) return std::nullopt;
  const auto is_named = [&](std::string_view key) {
    if (key == "zero_stage") return !space.zero_stage.empty();
    if (key == "shard_replicas") return !space.shard_replicas.empty();
    if (key == "pipeline_parallel") return !space.pipeline_parallel.empty();
    if (key == "virtual_stages") return !space.virtual_stages.empty();
    if (key == "expert_parallel") return !space.expert_parallel.empty();
    if (key == "expert_tensor_parallel") return !space.expert_tensor_parallel.empty();
    if (key == "schedule") return !space.schedule.empty();
    if (key == "layers_per_stage") return !space.layers_per_stage.empty();
    if (key == "sequence_parallel") return space.sequence_parallel.has_value();
    if (key == "rank_order") return !space.rank_order.empty();
    if (key == "recompute_parts") return !space.recompute.empty();
    // These values are the study's own, or a few that are tried where devices are unequal or where
    // nothing fits without them. The answer says that the framework cannot run them.
    return key == "batch_shares" || key == "context_exchange" || key.starts_with("offload_");
  };
  for (const launch::Limitation& one : launch::limitations_in(strategy, model))
    if (!is_named(one.key)) return one;
  return std::nullopt;
}

}  // namespace foreshard::search
