// The derivatives of a step by the speeds that it runs at (sensitivity.h), for `simulate
// --sensitivity` and sweeps. Elasticities have no unit.
#include "sim/simulate/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/index.h"

#include "sim/compute/evidence.h"
#include "sim/simulate/build.h"
#include "sim/simulate/fold.h"
#include "sim/simulate/forms.h"
#include "sim/simulate/memory_limit.h"

namespace foreshard::sim {
namespace {

struct SpeedName {
  std::string_view key;
  std::string_view name;
};
constexpr std::array<SpeedName, kSpeedKinds> kNames{{
    {"products", "arithmetic of matrix products"},
    {"attention", "arithmetic of attention"},
    {"passes", "arithmetic of memory-bound kernels"},
    {"memory_bandwidth", "memory bandwidth"},
    {"kernel_floor", "fixed time of kernels"},
    {"host", "host threads"},
    {"nvlink_bandwidth", "NVLink bandwidth"},
    {"pcie_bandwidth", "PCIe bandwidth"},
    {"socket_bandwidth", "bandwidth between sockets"},
    {"network_bandwidth", "network bandwidth"},
    {"host_memory_bandwidth", "host memory bandwidth"},
    {"channels", "copy rate of channels"},
    {"latency", "latency of communication"},
}};

SpeedKind speed_of(ParameterGroup group) {
  switch (group) {
    case ParameterGroup::kProducts:
      return SpeedKind::kProducts;
    case ParameterGroup::kAttention:
      return SpeedKind::kAttention;
    case ParameterGroup::kPasses:
    case ParameterGroup::kCommunication:
      break;
  }
  return SpeedKind::kPasses;
}

SpeedKind speed_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink:
      return SpeedKind::kNvlink;
    case LinkKind::kPcie:
      return SpeedKind::kPcie;
    case LinkKind::kSocket:
      return SpeedKind::kSocket;
    case LinkKind::kNetwork:
      return SpeedKind::kNetwork;
    case LinkKind::kMemory:
      break;
  }
  return SpeedKind::kHostMemory;
}

}  // namespace

std::string_view key_of(SpeedKind kind) {
  return kNames[static_cast<std::size_t>(kind)].key;
}
std::string_view name_of(SpeedKind kind) {
  return kNames[static_cast<std::size_t>(kind)].name;
}

// Finds the numbers of a built workload, and what each one depends on.
class ScalableStepMaker {
 public:
  ScalableStepMaker(const ClusterView& cluster, const program::Program& program,
                    const Communicators& communicators, const CommunicatorForms& forms,
                    const Folding& folding, BuiltWorkload built)
      : cluster_(cluster),
        program_(program),
        communicators_(communicators),
        forms_(forms),
        folding_(folding),
        built_(std::move(built)) {}

  ScalableStep make() && {
    const std::size_t activities = built_.workload.activity_count();
    made_.latency_.assign(activities, ScalableStep::kConstant);
    made_.work_.assign(activities, ScalableStep::kConstant);
    made_.link_speed_.assign(built_.workload.resource_count(), ScalableStep::kConstant);
    made_.limits_of_cap_.resize(built_.workload.shapes().size());
    made_.fraction_of_cap_.resize(built_.workload.shapes().size());
    for (std::size_t c = 0; c < built_.expansions.size(); ++c) take_class(c);
    take_links();
    take_caps();
    if (has_lags()) made_.host_speed_ = speed(SpeedKind::kHost, "");
    made_.workload_ = std::move(built_.workload);
    sort_speeds();
    return std::move(made_);
  }

 private:
  using Limit = ScalableStep::Limit;
  using Number = ScalableStep::Number;

  std::int32_t speed(SpeedKind kind, const std::string& device) {
    const auto [known, added] =
        speed_index_.try_emplace({kind, device}, static_cast<std::int32_t>(made_.speeds_.size()));
    if (added) made_.speeds_.push_back({kind, device});
    return known->second;
  }

  bool has_lags() const {
    return std::ranges::any_of(built_.workload.activities(),
                               [](const engine::Activity& one) { return one.release_lag > 0_s; });
  }

  std::int32_t add(Number number) {
    made_.numbers_.push_back(std::move(number));
    return static_cast<std::int32_t>(made_.numbers_.size()) - 1;
  }

  void take_class(std::size_t c) {
    const program::Role& role = program_.roles[at(built_.role_of_class[c])];
    const auto& instances = built_.expansions[c]->instances;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const std::size_t activity = first_activity(built_, c, i).index();
      const auto block = role.calls[at(instances[i].call)].block.index();
      const auto t = at(instances[i].task);
      const program::Task& task = program_.blocks[block].tasks[t];
      if (const auto* kernel = std::get_if<Kernel>(&task.body))
        made_.work_[activity] = number_of(c, block, t, *kernel);
      else if (const auto* what = std::get_if<program::Communication>(&task.body))
        std::tie(made_.latency_[activity], made_.work_[activity]) =
            numbers_of(c, block, t, *what, built_.workload.activities()[activity].work);
      else if (const auto* host = std::get_if<program::HostWork>(&task.body))
        made_.latency_[activity] = number_of(*host);
    }
  }

  std::int32_t number_of(std::size_t c, std::size_t block, std::size_t t, const Kernel& kernel) {
    const Device& device =
        cluster_.devices()[device_of(program_, folding_.rank_representative[c]).index()];
    const auto [known, added] =
        kernels_.try_emplace({device.type, device.speed, block, t}, ScalableStep::kConstant);
    if (!added) return known->second;
    const DeviceType& type = cluster_.device_types()[device.type.index()];
    const auto cache = times_.try_emplace(device.type, type).first;
    const OperatorTime& time = cache->second.time_of(kernel);
    Number number;
    number.kind = Number::Kind::kKernel;
    number.kernel = {.arithmetic = time.compute.in_base() / device.speed,
                     .memory = time.memory.in_base() / device.speed,
                     .floor = time.floor.in_base() / device.speed,
                     .arithmetic_speed = speed(speed_of(group_of(kernel)), type.name),
                     .memory_speed = speed(SpeedKind::kMemory, type.name),
                     .floor_speed = speed(SpeedKind::kFloor, type.name)};
    return known->second = add(std::move(number));
  }

  std::int32_t number_of(const program::HostWork& work) {
    made_.host_speed_ = speed(SpeedKind::kHost, "");
    Number number;
    number.kind = Number::Kind::kHost;
    number.host.time = work.time.in_base();
    return add(std::move(number));
  }

  /// The numbers of a communication: its delay, and its work.
  std::pair<std::int32_t, std::int32_t> numbers_of(std::size_t c, std::size_t block, std::size_t t,
                                                   const program::Communication& what,
                                                   double work) {
    const auto endpoint = at(communicators_.endpoint_of_task[block][t]);
    const auto communicator =
        at(communicators_.of_rank[endpoint][at(folding_.rank_representative[c])]);
    const std::int32_t group = folding_.class_of_communicator[communicator];
    const auto [known, added] = communications_.try_emplace(
        {group, what.bytes.in_base()}, std::pair(ScalableStep::kConstant, ScalableStep::kConstant));
    if (!added) return known->second;
    const auto representative = at(folding_.communicator_representative[at(group)]);
    const comm::FlatCollective& form = forms_.at(representative, what.bytes);
    known->second.first = add(delay_of(form, what.bytes));
    Number flow;
    flow.kind = Number::Kind::kFlow;
    flow.flow = {.bytes = work, .fraction = fraction_of(form)};
    if (flow.flow.fraction.used.size() > 1) known->second.second = add(std::move(flow));
    return known->second;
  }

  ScalableStep::Fraction fraction_of(const comm::FlatCollective& form) {
    return {.whole = limits_of(form, false), .used = limits_of(form, true)};
  }

  Number delay_of(const comm::FlatCollective& form, Bytes bytes) {
    const comm::StartUp& start = form.start;
    Number number;
    number.kind = Number::Kind::kDelay;
    ScalableStep::Delay& delay = number.delay;
    delay.fixed = form.latency.in_base();
    if (start.rendezvous > 0_s)
      delay.fixed += (start.rendezvous * (bytes / (bytes + start.eager_bytes))).in_base();
    if (start.fill_chunks > 0)
      delay.fill = start.fill_chunks * std::min(start.chunk, bytes).in_base();
    delay.bytes = bytes.in_base();
    delay.open = start.channels * std::min(bytes, start.channel_bytes).in_base();
    delay.own_channels = std::isfinite(form.rate_cap.in_base());
    delay.limits = limits_of(form, true);
    if (std::isfinite(form.rate_cap.in_base()))
      delay.limits.insert(delay.limits.begin(),
                          {speed(SpeedKind::kChannels, ""), form.rate_cap.in_base()});
    delay.latency_speed = speed(SpeedKind::kLatency, "");
    if (delay.own_channels) delay.channel_speed = speed(SpeedKind::kChannels, "");
    return number;
  }

  // Limits of a form's rate by each kind of link, with full bandwidth or with the kind's
  // efficiency.
  std::vector<Limit> limits_of(const comm::FlatCollective& form, bool by_efficiency) {
    std::map<SpeedKind, double> least;
    const auto limit = [&](SpeedKind kind, double rate) {
      const auto [known, added] = least.try_emplace(kind, rate);
      if (!added) known->second = std::min(known->second, rate);
    };
    for (const comm::LinkLoad& load : form.loads) {
      const Link& link = cluster_.links()[load.link.index()];
      limit(speed_of(link.kind), (link.bandwidth / load.bytes_per_byte).in_base() *
                                     (by_efficiency ? form.efficiency.of(link.kind) : 1));
    }
    if (by_efficiency && std::isfinite(form.efficiency.through_host.in_base()))
      limit(SpeedKind::kChannels, form.efficiency.through_host.in_base());
    std::vector<Limit> limits;
    limits.reserve(least.size());
    for (const auto& [kind, rate] : least) limits.push_back({speed(kind, ""), rate});
    return limits;
  }

  void take_links() {
    for (std::size_t l = 0; l < folding_.link_representative.size(); ++l) {
      const Link& link = cluster_.links()[folding_.link_representative[l].index()];
      made_.link_speed_[built_.resources.links[l].index()] = speed(speed_of(link.kind), "");
    }
  }

  void take_caps() {
    for (const auto& [key, shape] : built_.resources.communication_shape) {
      const auto representative = at(folding_.communicator_representative[at(key.first)]);
      const comm::FlatCollective& form = forms_.of(representative).at(key.second);
      if (!std::isfinite(form.rate_cap.in_base())) continue;
      made_.limits_of_cap_[shape.first.index()] = {
          {speed(SpeedKind::kChannels, ""), form.rate_cap.in_base()}};
      if (auto fraction = fraction_of(form); fraction.used.size() > 1)
        made_.fraction_of_cap_[shape.first.index()] = std::move(fraction);
    }
  }

  // Sorts by kind, then by device.
  void sort_speeds() {
    std::vector<std::int32_t> place(made_.speeds_.size());
    std::vector<Speed> sorted;
    for (const auto& [key, index] : speed_index_) {  // an ordered map
      place[at(index)] = static_cast<std::int32_t>(sorted.size());
      sorted.push_back(made_.speeds_[at(index)]);
    }
    made_.speeds_ = std::move(sorted);
    const auto move = [&](std::int32_t& speed) {
      if (speed != ScalableStep::kConstant) speed = place[at(speed)];
    };
    const auto move_all = [&](ScalableStep::Fraction& fraction) {
      for (auto* limits : {&fraction.whole, &fraction.used})
        for (Limit& limit : *limits) move(limit.speed);
    };
    move(made_.host_speed_);
    for (Number& number : made_.numbers_) {
      move(number.kernel.arithmetic_speed);
      move(number.kernel.memory_speed);
      move(number.kernel.floor_speed);
      move(number.delay.latency_speed);
      move(number.delay.channel_speed);
      for (Limit& limit : number.delay.limits) move(limit.speed);
      move_all(number.flow.fraction);
    }
    for (ScalableStep::Fraction& fraction : made_.fraction_of_cap_) move_all(fraction);
    for (std::int32_t& speed : made_.link_speed_) move(speed);
    for (auto& limits : made_.limits_of_cap_)
      for (Limit& limit : limits) move(limit.speed);
  }

  const ClusterView& cluster_;
  const program::Program& program_;
  const Communicators& communicators_;
  const CommunicatorForms& forms_;
  const Folding& folding_;
  BuiltWorkload built_;
  ScalableStep made_;
  std::map<std::pair<SpeedKind, std::string>, std::int32_t> speed_index_;
  std::map<DeviceTypeId, CachedOperatorTime> times_;
  std::map<std::tuple<DeviceTypeId, double, std::size_t, std::size_t>, std::int32_t> kernels_;
  std::map<std::pair<std::int32_t, double>, std::pair<std::int32_t, std::int32_t>> communications_;
};

Result<ScalableStep> ScalableStep::of(const ClusterView& cluster, const program::Program& program,
                                      const comm::Parameters& communication,
                                      const SimulateOptions& options) {
  if (options.engine != EngineKind::kFluid || options.granularity != Granularity::kFlat)
    return Error{Error::Code::kUnsupported,
                 "speeds are scaled in the fluid engine with flat collectives only; leave out "
                 "--engine and --granularity"};
  const Communicators communicators = communicators_of(program);
  FORESHARD_ASSIGN(const auto forms, choose_forms(cluster, program, communicators, communication));
  const Folding folding = fold(cluster, program, communicators, forms, options.fold);
  FORESHARD_TRY(check_memory(cluster, program, communicators, folding, options));
  // No chains: whether a chain is undisturbed depends on the speeds.
  FORESHARD_ASSIGN(auto built, build_workload(cluster, program, communicators, forms, folding,
                                              Granularity::kFlat, false));
  return ScalableStepMaker(cluster, program, communicators, forms, folding, std::move(built))
      .make();
}

const ScalableStep::Limit* ScalableStep::tightest(const std::vector<Limit>& limits,
                                                  std::span<const double> factors) {
  const Limit* least = nullptr;
  for (const Limit& limit : limits) {
    const double rate = limit.rate * factors[foreshard::at(limit.speed)];
    if (least == nullptr || rate < least->rate * factors[foreshard::at(least->speed)])
      least = &limit;
  }
  return least;
}

double ScalableStep::less_used(const Fraction& fraction, std::span<const double> factors) const {
  const std::vector<double> ones(factors.size(), 1.0);
  const auto rate = [](const std::vector<Limit>& limits, std::span<const double> of) {
    const Limit* least = tightest(limits, of);
    return least == nullptr ? 1.0 : least->rate * of[foreshard::at(least->speed)];
  };
  return rate(fraction.used, ones) / rate(fraction.whole, ones) * rate(fraction.whole, factors) /
         rate(fraction.used, factors);
}

void ScalableStep::add_less_used(const Fraction& fraction, double amount,
                                 std::vector<double>& row) const {
  const std::vector<double> ones(speeds_.size(), 1.0);
  const Limit* whole = tightest(fraction.whole, ones);
  const Limit* used = tightest(fraction.used, ones);
  if (whole == nullptr || used == nullptr) return;
  row[foreshard::at(whole->speed)] += amount;
  row[foreshard::at(used->speed)] -= amount;
}

double ScalableStep::value_of(const Number& number, std::span<const double> factors) const {
  const auto factor = [&](std::int32_t speed) { return factors[foreshard::at(speed)]; };
  switch (number.kind) {
    case Number::Kind::kKernel: {
      const KernelTime& time = number.kernel;
      return std::max(time.arithmetic / factor(time.arithmetic_speed),
                      time.memory / factor(time.memory_speed)) +
             time.floor / factor(time.floor_speed);
    }
    case Number::Kind::kDelay: {
      const Delay& delay = number.delay;
      double time = delay.fixed / factor(delay.latency_speed);
      const Limit* limit = tightest(delay.limits, factors);
      if (limit == nullptr) return time;  // nothing limits its bytes
      const double rate = limit->rate * factor(limit->speed);
      time += delay.fill / rate;
      // The number of channels that carry the rate: more of them if the rate grows and the
      // channels' does not.
      const std::vector<double> ones(factors.size(), 1.0);
      const double base = tightest(delay.limits, ones)->rate;
      const double open = delay.own_channels
                              ? delay.open * (rate / base) / factor(delay.channel_speed)
                              : delay.open;
      return time + std::max(0.0, open - delay.bytes) / rate;
    }
    case Number::Kind::kHost:
      return number.host.time / factor(host_speed_);
    case Number::Kind::kFlow:
      return number.flow.bytes * less_used(number.flow.fraction, factors);
  }
  FORESHARD_CHECK(false && "every number has a value");
  return 0;
}

std::vector<double> ScalableStep::slope_of(const Number& number) const {
  std::vector<double> slope(speeds_.size(), 0.0);
  const auto add = [&](std::int32_t speed, double amount) {
    slope[foreshard::at(speed)] += amount;
  };
  switch (number.kind) {
    case Number::Kind::kKernel: {
      const KernelTime& time = number.kernel;
      if (time.arithmetic < time.memory)
        add(time.memory_speed, -time.memory);
      else
        add(time.arithmetic_speed, -time.arithmetic);
      add(time.floor_speed, -time.floor);
      break;
    }
    case Number::Kind::kDelay: {
      const Delay& delay = number.delay;
      add(delay.latency_speed, -delay.fixed);
      const std::vector<double> ones(speeds_.size(), 1.0);
      const Limit* limit = tightest(delay.limits, ones);
      if (limit == nullptr) break;
      add(limit->speed, -delay.fill / limit->rate);
      if (delay.open <= delay.bytes) break;
      add(delay.own_channels ? delay.channel_speed : limit->speed, -delay.open / limit->rate);
      add(limit->speed, delay.bytes / limit->rate);
      break;
    }
    case Number::Kind::kHost:
      add(host_speed_, -number.host.time);
      break;
    case Number::Kind::kFlow:
      add_less_used(number.flow.fraction, number.flow.bytes, slope);
      break;
  }
  return slope;
}

engine::Workload ScalableStep::at(std::span<const double> factors) const {
  FORESHARD_CHECK(factors.size() == speeds_.size());
  FORESHARD_CHECK(std::ranges::all_of(factors, [](double factor) { return factor > 0; }));
  std::vector<double> values;
  values.reserve(numbers_.size());
  for (const Number& number : numbers_) values.push_back(value_of(number, factors));
  engine::Workload scaled;
  for (std::size_t r = 0; r < workload_.resource_count(); ++r) {
    const engine::ResourceId id{static_cast<std::int64_t>(r)};
    const std::int32_t speed = link_speed_[r];
    scaled.add_resource(
        workload_.capacity(id) * (speed == kConstant ? 1 : factors[foreshard::at(speed)]),
        workload_.resource_name(id));
  }
  for (std::size_t s = 0; s < workload_.shapes().size(); ++s) {
    engine::Shape shape = workload_.shapes()[s];
    if (const Limit* limit = tightest(limits_of_cap_[s], factors))
      shape.rate_cap = limit->rate * factors[foreshard::at(limit->speed)] *
                       less_used(fraction_of_cap_[s], factors);
    scaled.add_shape(std::move(shape));
  }
  scaled.reserve(workload_.activity_count(), workload_.edge_count());
  for (std::size_t a = 0; a < workload_.activity_count(); ++a) {
    engine::Activity activity = workload_.activities()[a];
    if (latency_[a] != kConstant) activity.latency = values[foreshard::at(latency_[a])] * 1_s;
    if (work_[a] != kConstant) activity.work = values[foreshard::at(work_[a])];
    if (activity.release_lag > 0_s)
      activity.release_lag = activity.release_lag / factors[foreshard::at(host_speed_)];
    scaled.add_activity(activity);
  }
  for (const auto& [from, to] : workload_.edges()) scaled.add_edge(from, to);
  return scaled;
}

engine::Slopes ScalableStep::slopes() const {
  engine::Slopes slopes;
  slopes.parameters = speeds_.size();
  // The numbers come first, in their order, so that an activity's row is the index of its number.
  for (const Number& number : numbers_) slopes.add(slope_of(number));
  slopes.latency = latency_;
  slopes.work = work_;
  slopes.lag = host_speed_;
  for (std::size_t r = 0; r < workload_.resource_count(); ++r) {
    const std::int32_t speed = link_speed_[r];
    if (speed == kConstant) {
      slopes.capacity.push_back(kConstant);
      continue;
    }
    std::vector<double> row(speeds_.size(), 0.0);
    row[foreshard::at(speed)] =
        workload_.capacity(engine::ResourceId{static_cast<std::int64_t>(r)});
    slopes.capacity.push_back(slopes.add(row));
  }
  for (std::size_t s = 0; s < limits_of_cap_.size(); ++s) {
    const std::vector<double> ones(speeds_.size(), 1.0);
    const Limit* limit = tightest(limits_of_cap_[s], ones);
    if (limit == nullptr) {
      slopes.rate_cap.push_back(kConstant);
      continue;
    }
    std::vector<double> row(speeds_.size(), 0.0);
    row[foreshard::at(limit->speed)] = limit->rate;
    add_less_used(fraction_of_cap_[s], limit->rate, row);
    slopes.rate_cap.push_back(slopes.add(row));
  }
  return slopes;
}

Result<Sensitivities> sensitivities_of(const ClusterView& cluster, const program::Program& program,
                                       const comm::Parameters& communication,
                                       const SimulateOptions& options) {
  FORESHARD_ASSIGN(const auto scalable, ScalableStep::of(cluster, program, communication, options));
  std::vector<double> factors(scalable.speeds().size(), 1.0);
  const engine::Workload workload = scalable.at(factors);
  FORESHARD_ASSIGN(const auto times, engine::run_fluid(workload));
  const auto slopes = engine::slopes_of_makespan(workload, times, scalable.slopes());
  Sensitivities result{.step = times.makespan, .of = {}};
  for (std::size_t s = 0; s < factors.size(); ++s) {
    factors[s] = Sensitivities::kMore;
    FORESHARD_ASSIGN(const auto faster, engine::run_fluid(scalable.at(factors)));
    factors[s] = 1;
    const double elasticity = result.step > 0_s ? slopes[s] / result.step.in_base() : 0;
    result.of.push_back({scalable.speeds()[s], elasticity, faster.makespan});
  }
  std::ranges::stable_sort(result.of, {}, &Sensitivity::elasticity);
  return result;
}

}  // namespace foreshard::sim
