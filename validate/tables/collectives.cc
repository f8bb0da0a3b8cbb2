// Predicts rows of tables of collectives, as nccl-tests measures them: each operation's time on
// idle links is compared with the measured time. collective_jobs() is called by
// evidence/accuracy.cc.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "strategies/comm/choose.h"
#include "strategies/comm/nccl/estimate.h"
#include "strategies/comm/nccl/search.h"
#include "validate/tables/collective_rows.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {
namespace {

using comm::nccl::Tables;

// Predicts rows with equal setups: the group of devices is built once.
class Group {
 public:
  Group(const CollectiveRow& first, const Context& context,
        const std::vector<KnownMachine>& machines) {
    error_ = prepare(first, context, machines);
  }

  Outcome outcome(const CollectiveRow& row, const Exclusion* excluded) const {
    Outcome result;
    result.id = row.id;
    result.family = family_of(row.source);
    result.machine = row.machine;
    result.operation = row.op;
    if (row.bytes) result.size_class = size_class(*row.bytes);
    const auto fail = [&](const Error& error) {
      result.status =
          error.code == Error::Code::kInfeasible ? RowStatus::kInfeasible : RowStatus::kUnsupported;
      result.reason = error.message;
      return result;
    };
    if (row.time_us > 0) result.measured = (row.time_us * 1_us).in_base();
    if (excluded != nullptr) {
      result.status = RowStatus::kExcluded;
      result.reason = excluded->reason;
      return result;
    }
    if (!row.fault.empty()) return fail({Error::Code::kUnsupported, row.fault});
    if (!error_.ok()) return fail(error_.error());
    if (!row.bytes || !result.measured)
      return fail({Error::Code::kUnsupported, "an operation without bytes or time"});
    result.assumed = group_->assumed;
    const Bytes bytes = *row.bytes * 1_B;
    const auto time = selector_->time(bytes);
    if (!time) return fail(time.error());
    result.predicted = (*time + stated_overhead(row.notes)).in_base();
    set_range(result, *range_);
    if (communicator_) {
      const auto estimates = comm::nccl::estimates(group_->kind, bytes, *communicator_, **tables_);
      if (!estimates.empty()) result.nccl = estimates.front().time.in_base();
    }
    return result;
  }

 private:
  Status prepare(const CollectiveRow& row, const Context& context,
                 const std::vector<KnownMachine>& machines) {
    yaml::Loader loader({.catalogue = context.catalogue});
    FORESHARD_ASSIGN(group_, measured_group(row, machines, loader, context.machine));
    range_ = range_among(group_->group, context);
    parameters_ = group_->allowed(context.communication);
    FORESHARD_ASSIGN(selector_,
                     comm::AlgorithmSelector::of(group_->kind, group_->group, parameters_));
    if (row.nodes > 1 && comm::has_plugin_tuner(group_->group)) return {};
    tables_ = loader.read_ref<Tables>("nccl-2.28");
    if (!*tables_) return tables_->error();
    auto communicator = comm::nccl::communicator_of(group_->group, **tables_);
    if (communicator) communicator_ = *std::move(communicator);
    return {};
  }

  // The error range of collectives on devices of this generation: by the best evidence among the
  // forms that list the generation, or as transferred parameters if none does.
  static study::ErrorRange range_among(const comm::Participants& group, const Context& context) {
    const std::string generation = generation_of(group.cluster->type_of(group.devices.front()));
    auto evidence = yaml::Evidence::kTransferred;
    for (const comm::FormParameters& form : context.communication.forms)
      if (std::ranges::find(form.architectures, generation) != form.architectures.end())
        evidence = std::min(evidence, form.evidence);
    return context.errors.communication.at(evidence);
  }

  std::optional<MeasuredGroup> group_;
  std::optional<study::ErrorRange> range_;           ///< Present if group_ is.
  comm::Parameters parameters_;                      ///< Parameters with the forms that rows allow.
  std::optional<comm::AlgorithmSelector> selector_;  ///< Refers to parameters_.
  std::optional<Result<Tables>> tables_;
  std::optional<comm::nccl::Communicator> communicator_;
  Status error_;
};

}  // namespace

const std::vector<std::string>& collective_columns() {
  static const std::vector<std::string> columns{"op", "bytes", "time_us", "nodes"};
  return columns;
}

Result<Jobs> collective_jobs(const Table& table, const Context& context) {
  FORESHARD_ASSIGN(auto rows, collective_rows(table.cells, table.path.string()));
  FORESHARD_ASSIGN(auto machines, machines_beside(table.path));
  std::map<CollectiveRow::Setup, std::pair<std::vector<std::size_t>, std::vector<CollectiveRow>>>
      setups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& [places, members] = setups[rows[i].setup()];
    places.push_back(i);
    members.push_back(rows[i]);
  }
  Jobs result{.jobs = {}, .outcomes = rows.size()};
  for (auto& [setup, members] : setups) {
    result.jobs.push_back({std::move(members.first),
                           [rows = std::move(members.second), &context, machines = machines] {
                             const Group group(rows.front(), context, machines);
                             std::vector<Outcome> outcomes;
                             for (const CollectiveRow& row : rows)
                               outcomes.push_back(
                                   group.outcome(row, context.exclusions.reason_for(row)));
                             return outcomes;
                           }});
  }
  return result;
}

}  // namespace foreshard::accuracy
