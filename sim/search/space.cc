#include "sim/search/space.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>

namespace foreshard::search {
namespace {

// What an effort means; powers of two unless `divisors`.
struct Effort {
  std::int64_t largest_micro_batch;
  std::int64_t largest_virtual_stages;
  bool divisors;
  std::vector<Recompute> recompute;
  std::vector<std::int64_t> zero_with_pipeline;
  std::vector<std::int64_t> zero_without;
  bool also_without_sequence_parallel;
};

const Effort& effort_of(std::int64_t level) {
  static const Effort efforts[] = {
      {4, 4, false, {Recompute::kSelective, Recompute::kFull}, {1}, {1, 3}, false},
      {16,
       16,
       false,
       {Recompute::kNone, Recompute::kSelective, Recompute::kFull},
       {0, 1},
       {0, 1, 2, 3},
       false},
      {64,
       64,
       true,
       {Recompute::kNone, Recompute::kSelective, Recompute::kFull},
       {0, 1},
       {0, 1, 2, 3},
       true},
  };
  return efforts[std::clamp<std::int64_t>(level, 1, 3) - 1];
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
  return wanted.empty() ? std::move(otherwise) : wanted;
}

class Enumerator {
 public:
  Enumerator(const SearchSpace& space, const Strategy& base, const Model& model,
             std::int64_t devices, std::span<const std::int64_t> fewer)
      : space_(space),
        effort_(effort_of(space.effort)),
        strategy_(base),
        model_(model),
        devices_(devices),
        fewer_(fewer) {
    strategy_.layers_per_stage.clear();
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
            strategy_.data_parallel = data;
            experts();
          }
        }
      }
    }
    return std::move(result_);
  }

 private:
  // Those wanted; else the divisors of the devices, and of what the model has to be split.
  std::vector<std::int64_t> sizes(const std::vector<std::int64_t>& wanted,
                                  std::int64_t parts) const {
    std::set<std::int64_t> found(wanted.begin(), wanted.end());
    if (wanted.empty()) {
      for (const std::int64_t whole : {devices_, space_.idle ? parts : 1})
        for (const std::int64_t size : divisors_of(whole, devices_, true)) found.insert(size);
    }
    return {found.begin(), found.end()};
  }

  // How many replicas these tensor and pipeline ranks get: each number that is named and possible;
  // else the largest that is, and the largest that the smaller numbers of devices have room for.
  std::vector<std::int64_t> replicas() const {
    const std::int64_t ranks =
        strategy_.tensor_parallel * strategy_.pipeline_parallel * strategy_.context_parallel;
    const std::int64_t room = devices_ / ranks;
    const bool divides = devices_ % ranks == 0 && allows(space_.data_parallel, room);
    // Sizes that leave devices over are not worth a word where the model does not suit them.
    const bool suits = model_.heads % strategy_.tensor_parallel == 0 &&
                       model_.layers % strategy_.pipeline_parallel == 0;
    std::vector<std::int64_t> found;
    for (std::int64_t data = room; data > 0 && space_.idle && suits; --data) {
      if (strategy_.global_batch % data != 0 || !allows(space_.data_parallel, data)) continue;
      found.push_back(data);
      if (space_.data_parallel.empty()) break;
    }
    if (found.empty() && divides) found.push_back(room);
    if (!space_.data_parallel.empty() || !space_.idle || !suits) return found;
    for (const std::int64_t devices : fewer_) {
      std::int64_t data = devices / ranks;
      while (data > 0 && strategy_.global_batch % data != 0) --data;
      if (data > 0 && std::ranges::find(found, data) == found.end()) found.push_back(data);
    }
    return found;
  }

  std::vector<std::int64_t> contexts() const {
    const std::int64_t most = std::max<std::int64_t>(model_.sequence / kTokensOfRank, 1);
    return chosen(space_.context_parallel,
                  divisors_of(model_.sequence, std::min(most, devices_), false));
  }

  // How the experts are shared: by as many ranks as hold a sequence or copies, each expert split as
  // all else is, or whole.
  void experts() {
    strategy_.expert_parallel = 1;
    strategy_.expert_tensor_parallel = 0;
    if (model_.experts == 0) return chunks();
    const std::int64_t ranks = strategy_.tensor_parallel * strategy_.copies();
    const auto ways = divisors_of(model_.experts, ranks, effort_.divisors);
    const bool is_split = strategy_.tensor_parallel > 1;
    for (const std::int64_t size : chosen(space_.expert_parallel, ways)) {
      for (const std::int64_t split :
           chosen(space_.expert_tensor_parallel,
                  is_split ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{0})) {
        strategy_.expert_parallel = size;
        strategy_.expert_tensor_parallel = split;
        chunks();
      }
    }
  }

  void chunks() {
    const std::int64_t pipeline = strategy_.pipeline_parallel;
    const std::int64_t layers = std::max<std::int64_t>(model_.layers / pipeline, 1);
    auto counts = pipeline == 1
                      ? std::vector<std::int64_t>{1}
                      : divisors_of(layers, effort_.largest_virtual_stages, effort_.divisors);
    for (const std::int64_t count : chosen(space_.virtual_stages, counts)) {
      strategy_.virtual_stages = count;
      strategy_.schedule = count > 1 ? "interleaved" : "1f1b";
      strategy_.schedule_actions.clear();
      strategy_.schedule_file.clear();
      strategy_.pass_times.clear();
      micro_batches();
    }
  }

  void micro_batches() {
    const std::int64_t per_replica =
        std::max<std::int64_t>(strategy_.global_batch / strategy_.data_parallel, 1);
    const auto sizes = divisors_of(per_replica, effort_.largest_micro_batch, effort_.divisors);
    for (const std::int64_t size : chosen(space_.micro_batch, sizes)) {
      strategy_.micro_batch = size;
      for (const Recompute recompute : chosen(space_.recompute, recomputations())) {
        strategy_.recompute = recompute;
        strategy_.recompute_parts =
            recompute == Recompute::kSelective ? recompute_parts_ : usual_recompute_parts();
        zero_stages();
      }
    }
  }

  // Without attention nothing of a layer is computed again by itself, unless parts are named.
  std::vector<Recompute> recomputations() const {
    std::vector<Recompute> kinds = effort_.recompute;
    if (model_.has_mixer(Mixer::kAttention) || recompute_parts_ != usual_recompute_parts())
      return kinds;
    std::ranges::replace(kinds, Recompute::kSelective, Recompute::kNone);
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    return kinds;
  }

  void zero_stages() {
    const bool pipeline = strategy_.pipeline_parallel > 1;
    const auto& usual = pipeline ? effort_.zero_with_pipeline : effort_.zero_without;
    for (const std::int64_t stage : chosen(space_.zero_stage, usual)) {
      if (pipeline && stage >= 2) {
        ++result_.considered;
        ++result_.misfits["zero_stage"];
        continue;
      }
      // Without replicas there is nothing to share: all stages are stage 0.
      strategy_.zero_stage = strategy_.copies() == 1 ? 0 : stage;
      strategy_.shard_replicas = strategy_.zero_stage == 0 ? 1 : shard_replicas_;
      sequence_parallel();
      if (strategy_.copies() == 1) break;
    }
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
    if (!space_.sequence_parallel.value_or(!effort_.also_without_sequence_parallel)) {
      strategy_.sequence_parallel = false;
      add();
    }
  }

  void add() {
    ++result_.considered;
    const auto faults = faults_in(strategy_, model_, devices_);
    if (!faults.empty()) {
      ++result_.misfits[faults.front().key];
      return;
    }
    if (strategy_.virtual_stages > 1 &&
        strategy_.micro_batches() % strategy_.pipeline_parallel != 0) {
      ++result_.misfits["virtual_stages"];
      return;
    }
    result_.most_devices = std::max(result_.most_devices, strategy_.devices());
    result_.candidates.push_back(strategy_);
  }

  const SearchSpace& space_;
  const Effort& effort_;
  Strategy strategy_;
  std::int64_t shard_replicas_ = strategy_.shard_replicas;  // where states are sharded
  ContextExchange exchange_ = strategy_.context_exchange;
  std::int64_t context_heads_ = strategy_.context_heads;
  std::vector<foreshard::Part> recompute_parts_ =
      strategy_.recompute_parts;  // where it is selective
  const Model& model_;
  std::int64_t devices_;
  std::span<const std::int64_t> fewer_;
  Enumeration result_;
};

}  // namespace

const yaml::Table<SearchSpace>& yaml_table(const SearchSpace*) {
  static const auto table =
      yaml::Table<SearchSpace>("search", "Which strategies a search tries (default: all).")
          .optional("effort", &SearchSpace::effort,
                    "How much is tried: 1 (little) to 3 (everything).", yaml::between(1, 3))
          .optional("tensor_parallel", &SearchSpace::tensor_parallel,
                    "The sizes to try (default: all that divide).")
          .optional("pipeline_parallel", &SearchSpace::pipeline_parallel,
                    "The sizes to try (default: all that divide).")
          .optional("data_parallel", &SearchSpace::data_parallel,
                    "The sizes to try (default: the largest that there are devices for, and that "
                    "1, 2, 4, ... nodes have).")
          .optional("context_parallel", &SearchSpace::context_parallel,
                    "The sizes to try (default: powers of two that leave each rank 8,192 tokens).")
          .optional("expert_parallel", &SearchSpace::expert_parallel,
                    "The sizes to try (default: all that divide the experts).")
          .optional("expert_tensor_parallel", &SearchSpace::expert_tensor_parallel,
                    "The sizes to try (default: as tensor_parallel, and 1).")
          .optional("micro_batch", &SearchSpace::micro_batch, "The sizes to try.")
          .optional("virtual_stages", &SearchSpace::virtual_stages, "The counts to try.")
          .optional("zero_stage", &SearchSpace::zero_stage, "The stages to try.")
          .optional("recompute", &SearchSpace::recompute, "The kinds to try.")
          .optional("sequence_parallel", &SearchSpace::sequence_parallel,
                    "Always or never, where tensor_parallel > 1.")
          .optional("idle", &SearchSpace::idle,
                    "Whether devices may be left over where the sizes do not divide.");
  return table;
}

Enumeration enumerate(const SearchSpace& space, const Strategy& base, const Model& model,
                      std::int64_t devices, std::span<const std::int64_t> fewer) {
  return Enumerator(space, base, model, devices, fewer).run();
}

nlohmann::ordered_json knobs_of(const Strategy& strategy) {
  return {{"tensor_parallel", strategy.tensor_parallel},
          {"pipeline_parallel", strategy.pipeline_parallel},
          {"context_parallel", strategy.context_parallel},
          {"data_parallel", strategy.data_parallel},
          {"expert_parallel", strategy.expert_parallel},
          {"expert_tensor_parallel", strategy.expert_tensor_parallel},
          {"sequence_parallel", strategy.sequence_parallel},
          {"schedule", strategy.schedule},
          {"virtual_stages", strategy.virtual_stages},
          {"micro_batch", strategy.micro_batch},
          {"global_batch", strategy.global_batch},
          {"recompute", yaml::name_of(strategy.recompute)},
          {"zero_stage", strategy.zero_stage},
          {"shard_replicas", strategy.shard_replicas}};
}

std::string_view misfit_text(std::string_view key) {
  if (key == "tensor_parallel") return "heads or matrices do not divide over the tensor ranks";
  if (key == "pipeline_parallel") return "layers do not divide into equal stages";
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
  if (key == "shard_replicas") return "data-parallel ranks do not divide into the sets of shards";
  return "a tensor cannot be split that way";
}

}  // namespace foreshard::search
