#include "validate/calibrate/collective_fit.h"

#include <algorithm>
#include <array>
#include <ceres/ceres.h>
#include <cmath>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"

#include "strategies/comm/choose.h"
#include "validate/calibrate/pooling.h"
#include "validate/tables/collective_rows.h"
#include "validate/tables/table.h"

namespace foreshard::calibrate {
namespace {

constexpr double kErrorScale = 0.1;  // expected deviation of log(predicted / measured)
// Standard deviations of a generation's logarithms around the common ones.
constexpr double kGenerationSpread = 0.5;
constexpr double kPollingSpread = 0.25;  // each polling time around the factor that they share
constexpr double kTransportSpread = 1.0;
constexpr std::size_t kTransportNumbers = 5;
// Exponents of the smooth minimum of several times (`least`). The fit begins with a smooth one, so
// that forms that are not the fastest at the start count too.
constexpr std::array kSharpness{8.0, 200.0};
// Clock in Hz at which the common numbers hold: that of GPUs since Hopper.
constexpr double kCommonClock = 2e9;
// Rows of a machine at which each has weight 1; more rows weigh less, as they share peculiarities.
constexpr double kRowsOfMachine = 100;

double number_of(const TransportNumbers& transport, std::size_t i) {
  const std::array<double, kTransportNumbers> numbers{
      transport.latency->in_base(), transport.rendezvous->in_base(),
      transport.eager_limit->in_base(), *transport.exchange_efficiency,
      transport.inject->in_base()};
  return numbers[i];
}
constexpr std::array<const char*, kTransportNumbers> kTransportNames{
    "latency", "rendezvous", "eager limit", "exchange efficiency", "inject"};

TransportNumbers with(TransportNumbers transport, const double* logarithms) {
  transport.latency.value = Seconds::from_base(std::exp(logarithms[0]));
  transport.rendezvous.value = Seconds::from_base(std::exp(logarithms[1]));
  transport.eager_limit.value = Bytes::from_base(std::exp(logarithms[2]));
  transport.exchange_efficiency.value = std::min(1.0, std::exp(logarithms[3]));
  transport.inject.value = Seconds::from_base(std::exp(logarithms[4]));
  return transport;
}

bool is_fitted(const TransportNumbers& transport) {
  return transport.latency->in_base() > 0 || transport.rendezvous->in_base() > 0;
}

// Clock of a device's multiprocessors in Hz, from its fp32 rate: a multiprocessor has 64 lanes on
// V100 and A100, else 128, and each does 2 operations per cycle. Source: CUDA C++ Programming
// Guide, throughput of native arithmetic instructions.
double clock_of(const DeviceType& device) {
  const double lanes = *device.compute_capability <= 80 ? 64 : 128;
  return device.vector_peak->in_base() / (2 * lanes * static_cast<double>(*device.multiprocessors));
}

bool is_for(const comm::FormParameters& form, const std::string& generation) {
  const auto& names = form.architectures;
  return names.empty() || std::find(names.begin(), names.end(), generation) != names.end();
}

// Whether `form` is the first of its algorithm and protocol for this generation: the one it uses.
bool is_first_for(const comm::Parameters& start, std::size_t form, const std::string& generation) {
  const auto& own = start.forms[form];
  if (own.on_request || !is_for(own, generation)) return false;
  for (std::size_t i = 0; i < form; ++i)
    if (start.forms[i].algorithm == own.algorithm && start.forms[i].protocol == own.protocol &&
        is_for(start.forms[i], generation))
      return false;
  return true;
}

double time_of(const PreparedGroup::Candidate& candidate, const comm::FormParameters& form,
               const TransportNumbers& transport, double bytes, bool* taken = nullptr) {
  const auto numbers =
      comm::numbers_of(*candidate.algorithm, candidate.pattern, candidate.demand, form, transport);
  const comm::TimeCurve curve{.latency = numbers.latency,
                              .rate = numbers.idle_rate(candidate.demand),
                              .start = numbers.start};
  if (taken != nullptr) *taken = !(bytes > numbers.start.most_bytes.in_base());
  return curve(Bytes::from_base(bytes)).in_base();
}

// A form that a row may have used, and its weight in the smooth minimum of the times.
struct Possible {
  std::size_t form = 0;
  const PreparedGroup::Candidate* candidate = nullptr;
  double time = 0;
  bool taken = true;
  double weight = 0;
};

// The forms that the group's generation can use for the group's operation.
std::vector<Possible> forms_of(const PreparedGroup& group, const Slots& slots) {
  std::vector<Possible> forms;
  for (const auto& candidate : group.candidates)
    for (std::size_t f = 0; f < slots.start().forms.size(); ++f) {
      const auto& start = slots.start().forms[f];
      if (start.algorithm == candidate.algorithm->name &&
          is_first_for(slots.start(), f, group.generation) && group.measured.allows(start) &&
          comm::can_use(start, group.measured.kind, candidate.pattern, group.transport))
        forms.push_back({.form = f, .candidate = &candidate});
    }
  return forms;
}

// One per row: the algorithm, if NCCL's tuner decides (choose.h); empty if the least time decides.
std::vector<std::string_view> decided(const PreparedGroup& group, const comm::Parameters& start) {
  std::vector<std::string_view> algorithms(group.rows.size());
  const comm::Parameters allowed = group.measured.allowed(start);
  const auto selector =
      comm::AlgorithmSelector::of(group.measured.kind, group.measured.group, allowed);
  for (std::size_t i = 0; selector && !selector->takes_fastest() && i < algorithms.size(); ++i)
    if (const auto form = selector->index_for(*group.rows[i].row.bytes * 1_B))
      algorithms[i] = selector->forms()[*form].algorithm;
  return algorithms;
}

// The members of `forms` that the tuner considers for `bytes`, with their times.
std::vector<Possible> possible_forms(const std::vector<Possible>& forms, const Slots& slots,
                                     const double* logarithms, const TransportNumbers& transport,
                                     double bytes) {
  std::vector<Possible> possible = forms;
  for (Possible& one : possible)
    one.time =
        time_of(*one.candidate, slots.form_at(one.form, logarithms), transport, bytes, &one.taken);
  if (std::any_of(possible.begin(), possible.end(), [](const auto& one) { return one.taken; }))
    std::erase_if(possible, [](const auto& one) { return !one.taken; });
  return possible;
}

// Smooth minimum of the times: (sum of t^-sharpness)^(-1 / sharpness). Sets the weights.
double least(std::vector<Possible>& possible, double sharpness) {
  const auto first = std::min_element(possible.begin(), possible.end(),
                                      [](const auto& a, const auto& b) { return a.time < b.time; });
  double sum = 0;
  for (auto& one : possible) sum += one.weight = std::pow(first->time / one.time, sharpness);
  for (auto& one : possible) one.weight /= sum;
  return first->time * std::pow(sum, -1 / sharpness);
}

// log(predicted / measured) / kErrorScale of one row.
class RowError final : public ceres::CostFunction {
 public:
  RowError(const PreparedGroup& group, const PreparedGroup::Row& row, std::string_view algorithm,
           const Slots& slots, const double& sharpness)
      : group_(group),
        row_(row),
        slots_(slots),
        sharpness_(sharpness),
        forms_(forms_of(group, slots)),
        has_transport_(is_fitted(group.transport.numbers)) {
    if (!algorithm.empty())
      std::erase_if(forms_, [&](auto& one) { return one.candidate->algorithm->name != algorithm; });
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(slots.all().size()));
    if (has_transport_) mutable_parameter_block_sizes()->push_back(kTransportNumbers);
  }

  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override {
    const TransportNumbers transport =
        has_transport_ ? with(group_.transport.numbers, parameters[1]) : group_.transport.numbers;
    const double bytes = *row_.row.bytes;
    auto possible = possible_forms(forms_, slots_, parameters[0], transport, bytes);
    const double time = least(possible, sharpness_);
    const double share = time / (time + row_.overhead);
    residuals[0] = std::log((time + row_.overhead) / row_.measured) / kErrorScale;
    if (jacobians == nullptr) return true;
    std::vector<double> moved(parameters[0], parameters[0] + slots_.all().size());
    if (jacobians[0] != nullptr) std::fill_n(jacobians[0], moved.size(), 0.0);
    if (has_transport_ && jacobians[1] != nullptr)
      std::fill_n(jacobians[1], kTransportNumbers, 0.0);
    for (const Possible& one : possible) {
      if (one.weight < 1e-3) continue;
      const auto slope = [&](double moved_time) {
        return share * one.weight * std::log(moved_time / one.time) / kErrorScale / kStep;
      };
      if (jacobians[0] != nullptr) add_slopes(one, transport, bytes, slope, moved, jacobians[0]);
      if (!has_transport_ || jacobians[1] == nullptr) continue;
      const auto form = slots_.form_at(one.form, parameters[0]);
      std::array<double, kTransportNumbers> numbers{};
      std::copy_n(parameters[1], kTransportNumbers, numbers.begin());
      for (std::size_t i = 0; i < kTransportNumbers; ++i) {
        numbers[i] += kStep;
        jacobians[1][i] += slope(
            time_of(*one.candidate, form, with(group_.transport.numbers, numbers.data()), bytes));
        numbers[i] -= kStep;
      }
    }
    return true;
  }

 private:
  static constexpr double kStep = 1e-5;

  void add_slopes(const Possible& one, const TransportNumbers& transport, double bytes,
                  const auto& slope, std::vector<double>& moved, double* slopes) const {
    std::set<int> seen;
    for (std::size_t f = 0; f < kFields; ++f) {
      const int slot = slots_.index(one.form, static_cast<Field>(f));
      if (slot < 0 || !seen.insert(slot).second) continue;
      double& number = moved[static_cast<std::size_t>(slot)];
      number += kStep;
      slopes[slot] +=
          slope(time_of(*one.candidate, slots_.form_at(one.form, moved.data()), transport, bytes));
      number -= kStep;
    }
  }

  const PreparedGroup& group_;
  const PreparedGroup::Row& row_;
  const Slots& slots_;
  const double& sharpness_;
  std::vector<Possible> forms_;
  bool has_transport_;
};

class Problem {
 public:
  Problem(const Input& input, const comm::Parameters& start) : input_(input), slots_(start) {
    for (const Slot& slot : slots_.all()) common_.push_back(std::log(slot.start));
    for (const auto& group : input.groups) {
      of_generation_.try_emplace(group->generation, common_);
      clocks_[group->generation].push_back(std::log(group->clock));
      if (!is_fitted(group->transport.numbers)) continue;
      auto& numbers = of_transport_[group->transport.numbers.name];
      networks_.try_emplace(group->transport.numbers.name, group->transport.numbers);
      if (!numbers.empty()) continue;
      const std::array<double, kTransportNumbers> least{1e-7, 1e-7, 256, 0.05, 1e-7};
      for (std::size_t i = 0; i < kTransportNumbers; ++i)
        numbers.push_back(std::log(std::max(least[i], number_of(group->transport.numbers, i))));
    }
  }

  Fit solve() {
    build();
    ceres::Solver::Options options;
    options.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
    options.max_num_iterations = 80;
    options.num_threads = 1;
    options.logging_type = ceres::SILENT;
    Fit result;
    for (const double sharpness : kSharpness) {
      sharpness_ = sharpness;
      options.function_tolerance = sharpness == kSharpness.back() ? 1e-7 : 1e-5;
      ceres::Solver::Summary summary;
      ceres::Solve(options, &problem_, &summary);
      result.iterations += static_cast<int>(summary.iterations.size());
      if (result.cost_before == 0) result.cost_before = summary.initial_cost;
      result.cost_after = summary.final_cost;
    }
    write(result);
    return result;
  }

 private:
  void build() {
    const std::size_t count = slots_.all().size();
    const auto limit = [&](double* block) {
      for (std::size_t i = 0; i < count; ++i) {
        problem_.SetParameterLowerBound(block, static_cast<int>(i), std::log(slots_.all()[i].low));
        problem_.SetParameterUpperBound(block, static_cast<int>(i), std::log(slots_.all()[i].high));
      }
    };
    std::vector<double> spread;
    for (const Slot& slot : slots_.all()) spread.push_back(slot.spread);
    problem_.AddResidualBlock(new Start(common_, spread), nullptr, common_.data());
    limit(common_.data());
    for (auto& [name, numbers] : of_generation_) {
      problem_.AddResidualBlock(new Distance(count, families(), apart(name)), nullptr,
                                numbers.data(), common_.data());
      limit(numbers.data());
    }
    for (auto& [name, numbers] : of_transport_) {
      problem_.AddResidualBlock(
          new Start(numbers, std::vector<double>(kTransportNumbers, kTransportSpread)), nullptr,
          numbers.data());
      problem_.SetParameterUpperBound(numbers.data(), 3, 0);
    }
    std::map<std::string, double> rows_of;
    for (const auto& group : input_.groups)
      rows_of[group->machine] += static_cast<double>(group->rows.size());
    std::map<std::string, ceres::LossFunction*> loss_of;  // the problem owns them
    for (const auto& [machine, rows] : rows_of)
      loss_of[machine] = new ceres::ScaledLoss(
          new ceres::CauchyLoss(1.0), std::sqrt(kRowsOfMachine / rows), ceres::TAKE_OWNERSHIP);
    for (const auto& group : input_.groups) {
      const auto algorithms = decided(*group, slots_.start());
      for (std::size_t r = 0; r < group->rows.size(); ++r) {
        std::vector<double*> blocks{of_generation_.at(group->generation).data()};
        if (is_fitted(group->transport.numbers))
          blocks.push_back(of_transport_.at(group->transport.numbers.name).data());
        problem_.AddResidualBlock(
            new RowError(*group, group->rows[r], algorithms[r], slots_, sharpness_),
            loss_of.at(group->machine), blocks);
      }
    }
  }

  std::vector<Family> families() const {
    Family alone{.own = kGenerationSpread};
    Family polling{.own = kPollingSpread, .together = kGenerationSpread};
    for (std::size_t i = 0; i < slots_.all().size(); ++i)
      (slots_.all()[i].polls ? polling : alone).members.push_back(i);
    return {alone, polling};
  }

  // Expected log(generation's number / common number), one per slot.
  std::vector<double> apart(const std::string& generation) const {
    const auto& clocks = clocks_.at(generation);
    const double mean =
        std::accumulate(clocks.begin(), clocks.end(), 0.0) / static_cast<double>(clocks.size());
    std::vector<double> result;
    for (const Slot& slot : slots_.all())
      result.push_back(slot.per_cycle ? mean - std::log(kCommonClock) : 0);
    return result;
  }

  // Standard deviation of each number of a block with all others held: 1 / sqrt(curvature).
  std::vector<double> deviations(double* block, std::size_t count) {
    std::vector<double> curvature(count, 1e-12);
    std::vector<ceres::ResidualBlockId> residuals;
    problem_.GetResidualBlocksForParameterBlock(block, &residuals);
    ceres::Problem::EvaluateOptions options;
    options.parameter_blocks = {block};
    options.residual_blocks = residuals;
    ceres::CRSMatrix jacobian;
    double cost = 0;
    problem_.Evaluate(options, &cost, nullptr, nullptr, &jacobian);
    for (std::size_t k = 0; k < jacobian.cols.size(); ++k)
      curvature[static_cast<std::size_t>(jacobian.cols[k])] +=
          jacobian.values[k] * jacobian.values[k];
    for (double& value : curvature) value = 1 / std::sqrt(value);
    return curvature;
  }

  void add_numbers(Fit& result, const std::string& generation, std::vector<double>& numbers) {
    const auto deviation = deviations(numbers.data(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::string name =
          generation.starts_with("transport ") ? kTransportNames[i] : slots_.all()[i].name;
      result.numbers.push_back({generation, name, std::exp(numbers[i]),
                                std::exp(numbers[i] - 1.96 * deviation[i]),
                                std::exp(numbers[i] + 1.96 * deviation[i])});
    }
  }

  void write(Fit& result) {
    result.parameters.name = slots_.start().name;
    result.parameters.tuner = slots_.start().tuner;
    result.parameters.nccl = slots_.start().nccl;
    for (auto& [name, numbers] : of_generation_) {
      add_numbers(result, name, numbers);
      for (const std::size_t form : used_by(name)) {
        auto fitted = slots_.form_at(form, numbers.data());
        fitted.architectures = {name};
        fitted.operations = slots_.start().forms[form].operations;
        fitted.evidence = yaml::Evidence::kFitted;
        fitted.source = machines_with(name);
        result.parameters.forms.push_back(std::move(fitted));
      }
    }
    add_numbers(result, "", common_);
    for (std::size_t form = 0; form < slots_.start().forms.size(); ++form) {
      auto common = slots_.form_at(form, common_.data());
      common.architectures = slots_.start().forms[form].architectures;
      common.operations = slots_.start().forms[form].operations;
      common.evidence = yaml::Evidence::kTransferred;
      common.source = slots_.start().forms[form].source;
      const auto hides_it = [&](const auto& fitted) { return comm::hides(fitted, common); };
      if (std::ranges::any_of(result.parameters.forms, hides_it)) continue;
      if (!common.on_request) common.source += "; scaled like the generations that were measured";
      result.parameters.forms.push_back(std::move(common));
    }
    for (auto& [name, numbers] : of_transport_) {
      add_numbers(result, "transport " + name, numbers);
      TransportNumbers fitted = with(networks_.at(name), numbers.data());
      const std::string source = machines_over(name);
      for (auto* sourced : {&fitted.latency, &fitted.rendezvous})
        *sourced = {**sourced, source, yaml::Evidence::kFitted};
      fitted.eager_limit = {*fitted.eager_limit, source, yaml::Evidence::kFitted};
      fitted.exchange_efficiency = {*fitted.exchange_efficiency, source, yaml::Evidence::kFitted};
      if (*fitted.inject_limit > 0_B)
        fitted.inject = {*fitted.inject, source, yaml::Evidence::kFitted};
      result.parameters.transports.push_back(std::move(fitted));
    }
    for (const TransportNumbers& unmeasured : slots_.start().transports)
      if (!of_transport_.contains(unmeasured.name))
        result.parameters.transports.push_back(unmeasured);
  }

  template <class Is>
  std::string fitted_to(Is is) const {
    std::set<std::string> names;
    for (const auto& group : input_.groups)
      if (is(*group)) names.insert(group->machine);
    return "fitted to " + join({names.begin(), names.end()}, "; ");
  }
  std::string machines_with(const std::string& generation) const {
    return fitted_to([&](const PreparedGroup& group) { return group.generation == generation; });
  }
  std::string machines_over(const std::string& transport) const {
    return fitted_to(
        [&](const PreparedGroup& group) { return group.transport.numbers.name == transport; });
  }

  // Forms whose algorithm serves an operation that was measured on this generation.
  std::vector<std::size_t> used_by(const std::string& generation) const {
    std::vector<std::size_t> used;
    for (std::size_t f = 0; f < slots_.start().forms.size(); ++f) {
      if (!is_first_for(slots_.start(), f, generation)) continue;
      const bool is =
          std::any_of(input_.groups.begin(), input_.groups.end(), [&](const auto& group) {
            return group->generation == generation &&
                   std::any_of(group->candidates.begin(), group->candidates.end(),
                               [&](const auto& candidate) {
                                 return candidate.algorithm->name ==
                                        slots_.start().forms[f].algorithm;
                               });
          });
      if (is) used.push_back(f);
    }
    return used;
  }

  const Input& input_;
  Slots slots_;
  std::vector<double> common_;
  std::map<std::string, std::vector<double>> of_generation_;
  std::map<std::string, std::vector<double>> clocks_;  // generation -> log(clock) of its groups
  std::map<std::string, std::vector<double>> of_transport_;
  std::map<std::string, TransportNumbers> networks_;
  double sharpness_ = kSharpness.front();
  ceres::Problem problem_;
};

Result<std::shared_ptr<PreparedGroup>> prepared(const accuracy::CollectiveRow& row,
                                                const std::vector<accuracy::KnownMachine>& machines,
                                                yaml::Loader& loader, const comm::Parameters& start,
                                                const ClusterConfig* machine) {
  FORESHARD_ASSIGN(auto measured, accuracy::measured_group(row, machines, loader, machine));
  auto group = std::make_shared<PreparedGroup>();
  group->measured = std::move(measured);
  group->machine = row.machine;
  group->operation = row.op;
  const auto& members = group->measured.group;
  const DeviceType& device = members.cluster->type_of(members.devices.front());
  group->generation = generation_of(device);
  group->clock = clock_of(device);
  FORESHARD_ASSIGN(group->transport, comm::transport_of(members, start));
  if (row.nodes == 1) group->transport.numbers = {};
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    if (algorithm.kind != group->measured.kind) continue;
    auto pattern = algorithm.pattern(members);
    if (!pattern && pattern.error().code == Error::Code::kUnsupported) continue;
    if (!pattern) return pattern.error();
    const comm::LinkDemand demand = comm::demand_of(*pattern, *members.cluster);
    group->candidates.push_back({&algorithm, *std::move(pattern), demand});
  }
  return group;
}

}  // namespace

Result<Input> read_input(const std::vector<std::filesystem::path>& tables,
                         const std::vector<std::filesystem::path>& catalogue,
                         const comm::Parameters& start, const std::optional<ClusterConfig>& machine,
                         std::string_view operation) {
  yaml::Loader loader({.catalogue = catalogue});
  const auto exclusions =
      loader.read_ref<accuracy::Exclusions>("excluded-collectives", "exclusions");
  if (!exclusions) return exclusions.error();
  Input input;
  std::map<accuracy::CollectiveRow::Setup, std::shared_ptr<PreparedGroup>> known;
  for (const auto& path : tables) {
    if (path.filename() == "machines.csv") continue;
    FORESHARD_ASSIGN(const auto cells, accuracy::read_measured_table(path, 64_MiB, operation));
    if (!accuracy::has_columns(cells, accuracy::collective_columns()))
      return Error{
          Error::Code::kInvalidInput,
          path.string() + ":1: this is not a table of collectives (op, bytes, time_us, nodes)"};
    FORESHARD_ASSIGN(const auto rows, accuracy::collective_rows(cells, path.string()));
    FORESHARD_ASSIGN(const auto machines, accuracy::machines_beside(path));
    for (const auto& row : rows) {
      if (!row.fault.empty())
        return Error{Error::Code::kInvalidInput, path.string() + ": " + row.fault};
      if (!row.bytes || !(row.time_us > 0) || exclusions->reason_for(row) != nullptr) {
        ++input.excluded;
        continue;
      }
      auto& group = known[row.setup()];
      if (!group) {
        FORESHARD_ASSIGN(auto made,
                         prepared(row, machines, loader, start, machine ? &*machine : nullptr));
        group = input.groups.emplace_back(std::move(made));
      }
      const double overhead = accuracy::stated_overhead(row.notes).in_base();
      group->rows.push_back({row, row.time_us * 1e-6, overhead});
      ++input.rows;
    }
  }
  if (input.rows == 0) return Error{Error::Code::kInvalidInput, "the tables have no row to fit to"};
  return input;
}

std::vector<std::string> machines_of(const Input& input) {
  std::set<std::string> names;
  for (const auto& group : input.groups) names.insert(group->machine);
  return {names.begin(), names.end()};
}

std::map<std::string, bool> halves_of(const Input& input) {
  struct Machine {
    std::string name, generation, transport;
    std::size_t rows = 0;
  };
  std::map<std::string, Machine> known;
  for (const auto& group : input.groups) {
    Machine& machine = known[group->machine];
    machine.name = group->machine;
    machine.generation = group->generation;
    machine.rows += group->rows.size();
    if (group->transport.numbers.name != "infiniband" || machine.transport.empty())
      machine.transport = group->transport.numbers.name;
  }
  std::vector<Machine> machines;
  machines.reserve(known.size());
  for (auto& [name, machine] : known) machines.push_back(std::move(machine));
  std::stable_sort(machines.begin(), machines.end(),
                   [](const Machine& a, const Machine& b) { return a.rows > b.rows; });
  std::array<std::vector<const Machine*>, 2> sides;
  std::map<std::string, bool> halves;
  for (const Machine& machine : machines) {
    const auto burden = [&](const std::vector<const Machine*>& side) {
      std::array<std::size_t, 3> sum{};  // same generation and transport, same generation, rows
      for (const Machine* other : side) {
        const bool same = other->generation == machine.generation;
        if (same && other->transport == machine.transport) ++sum[0];
        if (same) ++sum[1];
        sum[2] += other->rows;
      }
      return sum;
    };
    const bool second = burden(sides[1]) < burden(sides[0]);
    sides[second ? 1 : 0].push_back(&machine);
    halves[machine.name] = second;
  }
  return halves;
}

Input only(const Input& input, const std::vector<std::string>& machines) {
  Input part;
  for (const auto& group : input.groups) {
    if (std::find(machines.begin(), machines.end(), group->machine) == machines.end()) continue;
    part.groups.push_back(group);
    part.rows += static_cast<std::int64_t>(group->rows.size());
  }
  return part;
}

Result<Fit> fit(const Input& input, const comm::Parameters& start) {
  if (input.rows == 0) return Error{Error::Code::kInvalidInput, "there is no row to fit to"};
  return Problem(input, start).solve();
}

Result<std::vector<accuracy::Outcome>> predictions(const Input& input,
                                                   const comm::Parameters& parameters) {
  std::vector<accuracy::Outcome> outcomes;
  for (const auto& group : input.groups) {
    const auto& of = group->measured;
    const comm::Parameters allowed = of.allowed(parameters);
    FORESHARD_ASSIGN(const auto selector, comm::AlgorithmSelector::of(of.kind, of.group, allowed));
    for (const auto& row : group->rows) {
      accuracy::Outcome outcome;
      outcome.id = row.row.id;
      outcome.machine = group->machine;
      outcome.operation = group->operation;
      outcome.size_class = accuracy::size_class(*row.row.bytes);
      outcome.measured = row.measured;
      FORESHARD_ASSIGN(const auto time, selector.time(*row.row.bytes * 1_B));
      outcome.predicted = time.in_base() + row.overhead;
      outcomes.push_back(std::move(outcome));
    }
  }
  return outcomes;
}

}  // namespace foreshard::calibrate
