#include "validate/calibrate/link_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/quantity.h"

#include "strategies/comm/algorithms.h"
#include "strategies/comm/flat_form.h"
#include "validate/calibrate/log_fit.h"
#include "validate/calibrate/slots.h"

namespace foreshard::calibrate {
namespace {

constexpr double kStartUpSpread = 2.5;
constexpr double kRateSpread = 1.5;

// One form on one sample's group.
struct Candidate {
  std::size_t form = 0;  // index into Parameters::forms
  const comm::Algorithm* algorithm = nullptr;
  comm::Pattern pattern;
  comm::LinkDemand demand;
};
struct Prepared {
  const CollectiveSample* sample = nullptr;
  comm::GroupTransport transport;
  std::vector<Candidate> candidates;
};

comm::Participants group_of(const CollectiveSample& sample, const ClusterView& cluster,
                            const std::vector<std::int32_t>& device_of_rank) {
  comm::Participants group{.cluster = &cluster, .devices = {}};
  for (const std::int32_t rank : sample.ranks)
    group.devices.emplace_back(
        device_of_rank.empty() ? rank : device_of_rank[static_cast<std::size_t>(rank)]);
  const auto member = [&](std::int32_t rank) {
    return static_cast<std::int32_t>(std::ranges::find(sample.ranks, rank) - sample.ranks.begin());
  };
  group.routing = sample.routing;
  if (sample.root >= 0) group.root = member(sample.root);
  for (const program::Transfer& one : sample.transfers)
    group.transfers.push_back(
        {.from = member(one.from), .to = member(one.to), .part = one.bytes / sample.bytes});
  return group;
}

bool is_for(const comm::FormParameters& form, comm::CollectiveKind kind,
            const comm::Participants& group) {
  const auto& operations = form.operations;
  if (form.on_request) return false;
  if (!operations.empty() && std::ranges::find(operations, comm::name_of(kind)) == operations.end())
    return false;
  return form.architectures.empty() || std::ranges::all_of(group.devices, [&](DeviceId device) {
           return std::ranges::find(form.architectures,
                                    generation_of(group.cluster->type_of(device))) !=
                  form.architectures.end();
         });
}

Result<Prepared> prepared(const CollectiveSample& sample, const ClusterView& cluster,
                          const comm::Parameters& start,
                          const std::vector<std::int32_t>& device_of_rank) {
  for (const std::int32_t rank : sample.ranks) {
    const bool placed = device_of_rank.empty() || rank < std::ssize(device_of_rank);
    const auto device = !placed                  ? -1
                        : device_of_rank.empty() ? rank
                                                 : device_of_rank[static_cast<std::size_t>(rank)];
    if (device < 0 || device >= std::ssize(cluster.devices()))
      return Error{Error::Code::kInvalidInput,
                   fmt::format("rank {} of the measurement has no device in the cluster, which has "
                               "{}",
                               rank, cluster.devices().size())};
  }
  const comm::Participants group = group_of(sample, cluster, device_of_rank);
  FORESHARD_ASSIGN(auto transport, comm::transport_of(group, start));
  Prepared result{.sample = &sample, .transport = std::move(transport), .candidates = {}};
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    if (algorithm.kind != sample.kind) continue;
    std::set<comm::Protocol> seen;
    for (std::size_t f = 0; f < start.forms.size(); ++f) {
      const comm::FormParameters& form = start.forms[f];
      if (form.algorithm != algorithm.name || !is_for(form, sample.kind, group) ||
          !seen.insert(form.protocol).second)
        continue;
      auto pattern = algorithm.pattern(group);
      if (!pattern) {
        if (pattern.error().code == Error::Code::kUnsupported) continue;
        return pattern.error();
      }
      if (!comm::can_use(form, sample.kind, *pattern, result.transport)) continue;
      const comm::LinkDemand demand = comm::demand_of(*pattern, cluster);
      result.candidates.push_back(
          {.form = f, .algorithm = &algorithm, .pattern = *std::move(pattern), .demand = demand});
    }
  }
  if (result.candidates.empty())
    return Error{Error::Code::kUnsupported,
                 fmt::format("the communication file '{}' has no form for {} here", start.name,
                             comm::name_of(sample.kind))};
  return result;
}

struct Predicted {
  double time = std::numeric_limits<double>::infinity();  // seconds
  const Candidate* by = nullptr;
};
// The fastest candidate among those whose protocol is used for the sample's size; the fastest of
// all where no protocol is.
Predicted predicted(const Prepared& prepared, const comm::Parameters& parameters) {
  Predicted best;
  for (const bool any_size : {false, true}) {
    for (const Candidate& candidate : prepared.candidates) {
      const auto numbers =
          comm::numbers_of(*candidate.algorithm, candidate.pattern, candidate.demand,
                           parameters.forms[candidate.form], prepared.transport.numbers);
      if (!any_size && prepared.sample->bytes > numbers.start.most_bytes) continue;
      const comm::TimeCurve curve{.latency = numbers.latency,
                                  .rate = numbers.idle_rate(candidate.demand),
                                  .start = numbers.start};
      const double time = curve(prepared.sample->bytes).in_base();
      if (time < best.time) best = {time, &candidate};
    }
    if (best.by != nullptr) break;
  }
  return best;
}

// The numbers that samples of one form can determine: its start-up times, and whatever limits its
// rate at the start, the channels or a link.
std::vector<Field> fields_of(const comm::FormParameters& form, const Candidate& candidate,
                             const TransportNumbers& transport) {
  const comm::Pattern& pattern = candidate.pattern;
  const comm::LinkDemand& demand = candidate.demand;
  std::vector<Field> fields{Field::kBase};
  if (pattern.path.nvlink > 0) fields.push_back(Field::kHopNvlink);
  if (pattern.path.pcie > 0) fields.push_back(Field::kHopPcie);
  if (pattern.path.network > 0) fields.push_back(Field::kHopNetwork);
  const bool networked = pattern.path.network > 0;
  const auto numbers = comm::numbers_of(*candidate.algorithm, pattern, demand, form, transport);
  if (std::isfinite(numbers.rate_cap.in_base()) &&
      !(numbers.idle_rate(demand) < numbers.rate_cap)) {
    fields.push_back(networked ? Field::kNetworkChannelRate : Field::kChannelRate);
    return fields;
  }
  const double slowest = std::max({demand.nvlink, demand.pcie, demand.network});
  if (demand.network == slowest) {
    fields.push_back(Field::kPartNetwork);
  } else if (demand.nvlink == slowest) {
    fields.push_back(Field::kPartNvlink);
  } else {
    const bool by_host =
        demand.through_host / form.host_rate.in_base() > demand.pcie / form.efficiency.pcie;
    fields.push_back(by_host ? Field::kHostRate : Field::kPartPcie);
  }
  return fields;
}

LogNumber number_of(comm::FormParameters& form, Field field) {
  LogNumber number{.name = fmt::format("{}{}{} {}", form.algorithm,
                                       form.protocol == comm::Protocol::kNone ? "" : " ",
                                       comm::name_of(form.protocol), name_of(field)),
                   .value = value_of(form, field),
                   .set = [&form, field](double value) { set_value(form, field, value); },
                   .low = 1e-9,
                   .high = 1,
                   .spread = kStartUpSpread};
  if (!form.operations.empty()) number.name = form.operations.front() + " " + number.name;
  switch (field) {
    case Field::kPartNvlink:
    case Field::kPartPcie:
    case Field::kPartNetwork:
      number.low = 1e-4;
      number.spread = kRateSpread;
      break;
    case Field::kHostRate:
    case Field::kChannelRate:
    case Field::kNetworkChannelRate:
      number.low = 1e5;
      number.high = 1e14;
      number.spread = kRateSpread;
      break;
    default:
      break;
  }
  return number;
}

using Members = std::vector<const Prepared*>;

// `start` with fitted numbers of every form that `members` use at the start. Forms are fitted one
// by one, as they share no number.
comm::Parameters fitted(const comm::Parameters& start, const Members& members,
                        const std::string& source, std::vector<FittedValue>* values) {
  comm::Parameters parameters = start;
  std::map<std::size_t, Members> by_form;
  for (const Prepared* one : members) by_form[predicted(*one, start).by->form].push_back(one);
  for (const auto& entry : by_form) {
    const std::size_t form = entry.first;
    const Members& own = entry.second;
    comm::FormParameters& numbers = parameters.forms[form];
    std::set<Field> fields;
    for (const Prepared* one : own)
      for (const Candidate& candidate : one->candidates)
        if (candidate.form == form)
          for (const Field field : fields_of(numbers, candidate, one->transport.numbers))
            fields.insert(field);
    std::vector<LogNumber> free;
    free.reserve(fields.size());
    for (const Field field : fields) free.push_back(number_of(numbers, field));
    std::vector<double> measured;
    measured.reserve(own.size());
    for (const Prepared* one : own) measured.push_back(one->sample->time.median.in_base());
    auto found = fit_logarithms(
        free,
        [&](std::size_t i) {
          // Always this form's time, so that no row switches to another form during the fit.
          Prepared alone{
              .sample = own[i]->sample, .transport = own[i]->transport, .candidates = {}};
          for (const Candidate& candidate : own[i]->candidates)
            if (candidate.form == form) alone.candidates = {candidate};
          return predicted(alone, parameters).time;
        },
        measured);
    numbers.source = source;
    numbers.evidence = yaml::Evidence::kFitted;
    if (values != nullptr) values->insert(values->end(), found.begin(), found.end());
  }
  return parameters;
}

FitError error_of(const std::vector<Seconds>& errors) {
  if (errors.empty()) return {};
  return {.rows = std::ssize(errors),
          .median = measure::quantile(errors, 0.5) / 1_s,
          .p90 = measure::quantile(errors, 0.9) / 1_s};
}

void add_errors(std::vector<Seconds>& errors, const Members& members,
                const comm::Parameters& parameters) {
  for (const Prepared* one : members)
    errors.push_back(
        std::abs(predicted(*one, parameters).time / one->sample->time.median.in_base() - 1) * 1_s);
}

}  // namespace

Result<LinkFit> fit_links(const ClusterView& cluster, const comm::Parameters& start,
                          const std::vector<CollectiveSample>& collectives,
                          const std::vector<std::int32_t>& device_of_rank,
                          const std::string& source) {
  if (collectives.empty())
    return Error{Error::Code::kInvalidInput,
                 "no collective was measured with nothing beside it: replay the Program of "
                 "calibrate --plan"};
  std::vector<Prepared> all;
  all.reserve(collectives.size());
  for (const CollectiveSample& sample : collectives) {
    if (!(sample.time.median > 0_s)) continue;
    FORESHARD_ASSIGN(auto one, prepared(sample, cluster, start, device_of_rank));
    all.push_back(std::move(one));
  }
  Members members;
  std::array<Members, 2> halves;
  for (std::size_t i = 0; i < all.size(); ++i) {
    members.push_back(&all[i]);
    halves[i % 2].push_back(&all[i]);
  }

  LinkFit result;
  std::vector<Seconds> errors;
  add_errors(errors, members, start);
  result.before = error_of(errors);
  errors.clear();
  for (const std::size_t half : {0U, 1U})
    add_errors(errors, halves[1 - half], fitted(start, halves[half], source, nullptr));
  result.held_out = error_of(errors);
  errors.clear();
  result.parameters = fitted(start, members, source, &result.values);
  add_errors(errors, members, result.parameters);
  result.after = error_of(errors);
  for (const Prepared* one : members) {
    const double time = predicted(*one, result.parameters).time;
    const Seconds measured = one->sample->time.median;
    if (std::abs(time / measured.in_base() - 1) > kFarOff)
      result.outliers.push_back(
          fmt::format("{} of {} over {} ranks: measured {}, the fitted model says {}",
                      comm::name_of(one->sample->kind), format(one->sample->bytes),
                      one->sample->ranks.size(), format(measured), format(time * 1_s)));
  }
  return result;
}

}  // namespace foreshard::calibrate
