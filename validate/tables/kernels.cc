// Predicts rows of tables of kernels: the time of each row's kernels, alone on an idle device, is
// compared with the measured time. kernel_jobs() is called by evidence/accuracy.cc.
#include <fmt/format.h>
#include <map>
#include <optional>
#include <variant>

#include "base/yaml/loader.h"

#include "sim/compute/evidence.h"
#include "sim/compute/operator_time.h"
#include "validate/tables/device_names.h"
#include "validate/tables/kernel_rows.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {
namespace {

// The clocks at which the kernel ran: from 0.1 s on, a power limit lowers the clocks even of a
// single kernel (flashinfer-ai/flashinfer pull request 2899: attention on B200).
Duty duty_of(const Kernel& kernel, const KernelRow& row, const DeviceType& device) {
  constexpr Seconds kUntilLimited = 100_ms;
  if (row.draws_little || time_of(kernel, device, row.duty).total() < kUntilLimited)
    return row.duty;
  return Duty::kSustained;
}

// The time that the blocks wait for memory. A multiprocessor holds 2,048 threads and starts a new
// block whenever one ends.
Seconds latency_of(const Blocks& blocks, const DeviceType& device) {
  // Fitted to aiconfigurator's rows of vLLM's attention that differ only in heads of keys and
  // values: 1.5 us on B200, 2.1 us on H100, 3 us on A100. Not modelled: differences between
  // devices.
  constexpr Seconds kLatency = 2_us;
  constexpr double kResident = 2048;
  const double threads = static_cast<double>(blocks.count) * static_cast<double>(blocks.threads);
  return threads / (kResident * static_cast<double>(*device.multiprocessors)) * kLatency;
}

Seconds predicted(const KernelRow& row, const DeviceType& device) {
  Seconds sum = latency_of(row.blocks, device);
  for (const Kernel& kernel : row.kernels) {
    OperatorTime time = time_of(kernel, device, duty_of(kernel, row, device));
    if (row.pass_share && std::holds_alternative<Pass>(kernel))
      time.memory = bytes_of(kernel) / (*device.memory_bandwidth * *row.pass_share);
    sum += time.total();
  }
  return sum;
}

// The outcome of one row.
// \param guessed  whether the capacity of the device is a guess.
Outcome outcome_of(const KernelRow& row, const Result<DeviceType>& device, bool guessed,
                   const study::ParameterErrors& errors) {
  Outcome result;
  result.id = row.id;
  result.family = family_of(row.source);
  if (row.measured > 0_s) result.measured = row.measured.in_base();
  if (!device || !row.obstacle.empty()) {
    result.status = RowStatus::kUnsupported;
    result.reason = row.obstacle.empty() ? device.error().message : row.obstacle;
    return result;
  }
  result.kernel = fmt::format("{} on {}", row.operation, device->name);
  result.assumed = row.assumed;
  if (guessed) result.assumed.emplace_back("gpu_memory");
  result.predicted = predicted(row, *device).in_base();
  const Kernel& first = row.kernels.front();
  set_range(result, errors.of(group_of(first)).at(evidence_of(first, *device)));
  return result;
}

// The outcomes of the rows of one device.
std::vector<Outcome> outcomes_of(const std::string& gpu, const std::vector<KernelRow>& rows,
                                 const Context& context) {
  const auto named = device_named(gpu, std::nullopt);
  yaml::Loader loader({.catalogue = context.catalogue});
  const auto device =
      named ? loader.read_ref<DeviceType>(named->name)
            : Result<DeviceType>(Error{Error::Code::kUnsupported,
                                       fmt::format("device '{}' is not in the catalogue", gpu)});
  std::vector<Outcome> outcomes;
  outcomes.reserve(rows.size());
  for (const KernelRow& row : rows)
    outcomes.push_back(outcome_of(row, device, named && named->guessed_memory, context.errors));
  return outcomes;
}

}  // namespace

Jobs kernel_jobs(const Table& table, const Context& context, const KernelFormat& format) {
  auto rows = kernel_rows(format, table.cells, table.path.string());
  Jobs result{.jobs = {}, .outcomes = rows.size()};
  struct Members {
    std::vector<std::size_t> places;
    std::vector<KernelRow> rows;
  };
  std::map<std::string, Members> devices;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Members& members = devices[rows[i].gpu];
    members.places.push_back(i);
    members.rows.push_back(std::move(rows[i]));
  }
  for (auto& [gpu, members] : devices)
    result.jobs.push_back(
        {std::move(members.places), [gpu = gpu, rows = std::move(members.rows), &context] {
           return outcomes_of(gpu, rows, context);
         }});
  return result;
}

}  // namespace foreshard::accuracy
