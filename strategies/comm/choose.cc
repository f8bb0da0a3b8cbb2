#include "strategies/comm/choose.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"

#include "strategies/comm/nccl/estimate.h"

namespace foreshard::comm {
namespace {

template <class T>
bool in_range(const T& value, const std::optional<T>& from, const std::optional<T>& to) {
  return (!from || value >= *from) && (!to || value <= *to);
}

std::int64_t nodes_of(const Participants& group) {
  std::set<std::int32_t> nodes;
  for (const DeviceId device : group.devices)
    nodes.insert(group.cluster->devices()[device.index()].node);
  return static_cast<std::int64_t>(nodes.size());
}

// Whether NCCL's own tuner has a say in what `group` takes.
bool asks_nccl(const Participants& group, TunerKind tuner) {
  if (tuner != TunerKind::kBetweenNodes) return tuner == TunerKind::kNccl;
  return nodes_of(group) > 1 && !has_plugin_tuner(group) &&
         std::ranges::all_of(group.devices, [&](DeviceId device) {
           // A compute capability that is not a default: an NVIDIA device.
           return group.cluster->type_of(device).compute_capability.evidence !=
                  yaml::Evidence::kTransferred;
         });
}

// The rate of a form with fewer channels than its own. Channels that have a rate of their own keep
// it; others share the rate that the form reaches on idle links.
struct FewerChannels {
  BytesPerSecond rate;
  double full_rate_channels = 1;  // StartUp::channels
};

FewerChannels narrowed_to(std::int64_t channels, const FlatCollective& form,
                          BytesPerSecond idle_rate) {
  const double ratio = std::min(1.0, static_cast<double>(channels) / form.channels);
  if (!std::isfinite(form.rate_cap.in_base()))
    return {ratio * idle_rate, ratio * form.start.channels};
  const BytesPerSecond rate = std::min(idle_rate, ratio * form.rate_cap);
  return {rate, form.channels * (rate / form.rate_cap)};
}

}  // namespace

bool has_plugin_tuner(const Participants& group) {
  return std::ranges::any_of(group.devices, [&](DeviceId device) {
    const std::int32_t node = group.cluster->devices()[device.index()].node;
    return group.cluster->host(node).transport.own_tuner;
  });
}

AlgorithmSelector::AlgorithmSelector(CollectiveKind kind, const Participants& group,
                                     const Parameters& parameters,
                                     std::vector<FlatCollective> forms)
    : kind_(kind),
      cluster_(group.cluster),
      parameters_(&parameters),
      forms_(std::move(forms)),
      ranks_(static_cast<std::int64_t>(group.devices.size())),
      nodes_(parameters.choices.empty() && parameters.measured.empty() ? 0 : nodes_of(group)) {
  curves_.reserve(forms_.size());
  for (const FlatCollective& form : forms_) curves_.push_back(form.curve(*cluster_));
  for (const AlgorithmOverride& choice : parameters.choices)
    if (choice.operation == name_of(kind) && in_range(ranks_, choice.from_ranks, choice.to_ranks) &&
        in_range(nodes_, choice.from_nodes, choice.to_nodes) && ranks_ > 1)
      choices_.push_back(&choice);
  for (const MeasuredCollective& one : parameters.measured)
    if (one.operation == name_of(kind) && one.ranks == ranks_ &&
        (!one.nodes || one.nodes == nodes_))
      measured_.push_back(&one);
}

Result<AlgorithmSelector> AlgorithmSelector::made(CollectiveKind kind, const Participants& group,
                                                  const Parameters& parameters,
                                                  Result<std::vector<FlatCollective>> forms) {
  if (!forms) return forms.error();
  AlgorithmSelector selector(kind, group, parameters, *std::move(forms));
  if (parameters.nccl && selector.forms_.size() > 1 && asks_nccl(group, parameters.tuner)) {
    FORESHARD_ASSIGN(selector.communicator_, nccl::communicator_of(group, **parameters.nccl));
  }
  return selector;
}

Result<AlgorithmSelector> AlgorithmSelector::of(CollectiveKind kind, const Participants& group,
                                                const Parameters& parameters) {
  return made(kind, group, parameters, flat_forms(kind, group, parameters));
}

Result<AlgorithmSelector> AlgorithmSelector::representative(CollectiveKind kind,
                                                            const Participants& group,
                                                            const Parameters& parameters) {
  return made(kind, group, parameters, representative_forms(kind, group, parameters));
}

bool AlgorithmSelector::takes_fastest() const {
  return choices_.empty() && measured_.empty() && !communicator_;
}

const AlgorithmOverride* AlgorithmSelector::choice_for(Bytes bytes) const {
  for (const AlgorithmOverride* choice : choices_)
    if (in_range(bytes, choice->from_bytes, choice->to_bytes)) return choice;
  return nullptr;
}

const MeasuredCollective* AlgorithmSelector::measured_for(Bytes bytes) const {
  constexpr double kAlike = 1e-3;
  for (const MeasuredCollective* one : measured_)
    if (std::abs(one->bytes / bytes - 1) <= kAlike) return one;
  return nullptr;
}

std::size_t AlgorithmSelector::tuned(Bytes bytes, std::vector<std::size_t> candidates) const {
  FORESHARD_CHECK(!candidates.empty());
  if (communicator_) {
    const bool protocol_too = parameters_->tuner == TunerKind::kNccl;
    for (const nccl::Estimate& estimate :
         nccl::estimates(kind_, bytes, *communicator_, **parameters_->nccl)) {
      std::vector<std::size_t> preferred;
      for (const std::size_t i : candidates)
        if (forms_[i].algorithm == estimate.algorithm &&
            (!protocol_too || forms_[i].protocol == name_of(estimate.protocol)))
          preferred.push_back(i);
      if (preferred.empty()) continue;
      candidates = std::move(preferred);
      break;
    }
  }
  std::vector<TimeCurve> curves;
  curves.reserve(candidates.size());
  for (const std::size_t i : candidates) curves.push_back(curves_[i]);
  return candidates[least_of(curves, bytes)];
}

Result<std::size_t> AlgorithmSelector::index_for(Bytes bytes) const {
  if (takes_fastest()) return least_of(curves_, bytes);
  std::vector<std::size_t> candidates(forms_.size());
  std::iota(candidates.begin(), candidates.end(), std::size_t{0});
  const AlgorithmOverride* choice = choice_for(bytes);
  if (choice == nullptr) return tuned(bytes, candidates);
  std::erase_if(candidates, [&](std::size_t i) {
    return forms_[i].algorithm != choice->algorithm ||
           (choice->protocol && forms_[i].protocol != name_of(*choice->protocol));
  });
  if (!candidates.empty()) return tuned(bytes, candidates);
  std::set<std::string> able;
  for (const FlatCollective& form : forms_)
    able.insert(std::string(form.algorithm) +
                (form.protocol.empty() ? "" : " " + std::string(form.protocol)));
  std::string list;
  for (const std::string& name : able) list += (list.empty() ? "" : ", ") + name;
  const std::string protocol =
      choice->protocol ? " with protocol " + std::string(yaml::name_of(*choice->protocol)) : "";
  return Error{Error::Code::kInvalidInput,
               std::string(name_of(kind_)) + " of " + std::to_string(ranks_) + " ranks: '" +
                   choice->algorithm + "'" + protocol +
                   " was chosen, but these devices cannot do it; they can do " + list};
}

Result<FlatCollective> AlgorithmSelector::choose(Bytes bytes) const {
  FORESHARD_ASSIGN(const auto index, index_for(bytes));
  const AlgorithmOverride* choice = choice_for(bytes);
  FlatCollective form = choice == nullptr || !choice->channels
                            ? forms_[index]
                            : with_channels(forms_[index], *choice->channels, *cluster_);
  if (const MeasuredCollective* measured = measured_for(bytes))
    return lasting(std::move(form), bytes, measured->time, *cluster_);
  return form;
}

Result<Seconds> AlgorithmSelector::time(Bytes bytes) const {
  if (const MeasuredCollective* measured = measured_for(bytes)) return measured->time;
  FORESHARD_ASSIGN(const auto index, index_for(bytes));
  return curve_for(index, choice_for(bytes))(bytes);
}

TimeCurve AlgorithmSelector::curve_for(std::size_t index, const AlgorithmOverride* choice) const {
  TimeCurve curve = curves_[index];
  if (choice == nullptr || !choice->channels) return curve;
  const FewerChannels narrowed = narrowed_to(*choice->channels, forms_[index], curve.rate);
  curve.rate = narrowed.rate;
  curve.start.channels = narrowed.full_rate_channels;
  return curve;
}

Result<AlgorithmSelector::Flow> AlgorithmSelector::flow(Bytes bytes) const {
  FORESHARD_ASSIGN(const auto index, index_for(bytes));
  const AlgorithmOverride* const choice = choice_for(bytes);
  const TimeCurve curve = curve_for(index, choice);
  Flow flow{.time = bytes / curve.rate, .sm_share = forms_[index].sm_share};
  if (choice != nullptr && choice->channels)
    flow.sm_share = std::min(
        1.0, flow.sm_share * static_cast<double>(*choice->channels) / forms_[index].channels);
  const MeasuredCollective* const measured = measured_for(bytes);
  const Seconds own = curve(bytes);
  if (measured != nullptr && own > 0_s) flow.time = flow.time * (measured->time / own);
  return flow;
}

void AlgorithmSelector::forget_loads() {
  for (FlatCollective& form : forms_) std::vector<LinkLoad>().swap(form.loads);
}

FlatCollective with_channels(FlatCollective form, std::int64_t channels,
                             const ClusterView& cluster) {
  const double ratio = static_cast<double>(channels) / form.channels;
  const FewerChannels narrowed = narrowed_to(channels, form, form.idle_rate(cluster));
  if (ratio < 1) form.rate_cap = narrowed.rate;
  form.start.channels = narrowed.full_rate_channels;
  form.channels = static_cast<double>(channels);
  form.connections = std::max(1.0, form.connections * ratio);
  form.sm_share = std::min(1.0, form.sm_share * ratio);
  return form;
}

FlatCollective lasting(FlatCollective form, Bytes bytes, Seconds time, const ClusterView& cluster) {
  const Seconds own = form.idle_time(bytes, cluster);
  if (!(own > 0_s)) return form;
  const double factor = time / own;
  form.latency = factor * form.latency;
  form.start.rendezvous = factor * form.start.rendezvous;
  form.rate_cap = form.rate_cap / factor;
  form.bandwidth_fraction /= factor;
  LinkEfficiency& efficiency = form.efficiency;
  for (double* part : {&efficiency.nvlink, &efficiency.pcie, &efficiency.network}) *part /= factor;
  efficiency.through_host = efficiency.through_host / factor;
  form.measured = true;
  return form;
}

}  // namespace foreshard::comm
