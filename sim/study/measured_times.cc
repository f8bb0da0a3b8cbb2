// Reads, writes and applies tables of measured times (measured_times.h), for `--measured`, and for
// `foreshard calibrate`, which writes them. Times are seconds.
#include "sim/study/measured_times.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "base/csv.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "base/text.h"

#include "sim/compute/kernel_text.h"
#include "sim/study/study.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"

namespace foreshard::study {
namespace {

using program::CollectiveKind;

constexpr std::array kColumns{"kernel",  "operation", "bytes",   "ranks", "nodes",
                              "time_us", "low_us",    "high_us", "source"};

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Reads row by row and stops at the first fault.
class Reader {
 public:
  Reader(const CsvTable& table, std::string_view name) : table_(table), name_(name) {}

  Result<MeasuredTimes> run() {
    for (const std::string& column : table_.header) {
      if (std::ranges::find(kColumns, column) != kColumns.end()) continue;
      return fault(1, fmt::format("unknown column '{}'; there are {}", column,
                                  join({kColumns.begin(), kColumns.end()})));
    }
    if (!table_.column("time_us")) return fault(1, "has no column 'time_us'");
    MeasuredTimes times{.file = std::string(name_)};
    for (const CsvTable::Row& row : table_.rows) {
      FORESHARD_ASSIGN(auto read, read_row(row));
      times.rows.push_back(std::move(read));
    }
    if (times.rows.empty()) return fault(1, "has no row below its header");
    return times;
  }

 private:
  Error fault(std::size_t line, const std::string& why) const {
    return {Error::Code::kInvalidInput, fmt::format("{}:{}: {}", name_, line, why)};
  }
  std::string cell(const CsvTable::Row& row, const char* column) const {
    const auto place = table_.column(column);
    return place ? row.fields[*place] : std::string();
  }

  // Microseconds; nothing for an empty cell.
  Result<std::optional<Seconds>> time_in(const CsvTable::Row& row, const char* column) const {
    const std::string text = cell(row, column);
    if (text.empty()) return std::optional<Seconds>();
    const auto value = number_in(text);
    if (!value || !(*value > 0))
      return fault(row.line,
                   fmt::format("{}: '{}' is no positive number of microseconds", column, text));
    return std::optional(*value * 1_us);
  }
  Result<std::optional<std::int64_t>> count_in(const CsvTable::Row& row, const char* column) const {
    const std::string text = cell(row, column);
    if (text.empty()) return std::optional<std::int64_t>();
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() || value < 1)
      return fault(row.line, fmt::format("{}: '{}' is no whole number from 1 on", column, text));
    return std::optional(value);
  }
  Result<Bytes> bytes_in(const CsvTable::Row& row) const {
    const std::string text = cell(row, "bytes");
    Bytes bytes{};
    if (const auto number = number_in(text)) {
      bytes = Bytes::from_base(*number);
    } else if (const auto quantity = parse<Bytes>(text)) {
      bytes = *quantity;
    }
    if (!(bytes > 0_B))
      return fault(row.line, fmt::format("bytes: '{}' is no size; write 67108864 or 64 MiB", text));
    return bytes;
  }

  Result<MeasuredRow> read_row(const CsvTable::Row& row) {
    FORESHARD_ASSIGN(const auto time, time_in(row, "time_us"));
    FORESHARD_ASSIGN(const auto low, time_in(row, "low_us"));
    FORESHARD_ASSIGN(const auto high, time_in(row, "high_us"));
    if (!time) return fault(row.line, "time_us: is missing");
    const std::string kernel = cell(row, "kernel");
    const std::string operation = cell(row, "operation");
    if (kernel.empty() == operation.empty())
      return fault(row.line,
                   kernel.empty()
                       ? "names neither a kernel nor an operation; write one of them"
                       : "names both a kernel and an operation; write them in rows of their own");
    MeasuredRow result{.line = row.line};
    std::string key;
    if (!kernel.empty()) {
      for (const char* column : {"bytes", "ranks", "nodes"})
        if (!cell(row, column).empty())
          return fault(row.line, fmt::format("{}: belongs to operations, not to kernels", column));
      if (!kernel_from(kernel))
        return fault(row.line,
                     fmt::format("kernel: '{}' is not a kernel; write it as in reports: gemm "
                                 "512x512x2048 fp32, attention_fwd 2x8/8 seq 256x256 dim 64 causal "
                                 "fp32, gelu_fwd 512x2048 fp32",
                                 kernel));
      key = kernel;
      result.kernel = MeasuredKernel{.kernel = kernel,
                                     .time = *time,
                                     .low = low,
                                     .high = high,
                                     .burst = false,
                                     .source = cell(row, "source")};
    } else {
      const auto kind = program::find_collective(operation);
      if (!kind || *kind == CollectiveKind::kExchange || program::is_with_host(*kind))
        return fault(row.line,
                     fmt::format("operation: '{}' is no collective; there are all_reduce, "
                                 "all_gather, reduce_scatter, broadcast, all_to_all, "
                                 "shift, token_exchange, send",
                                 operation));
      FORESHARD_ASSIGN(const Bytes bytes, bytes_in(row));
      FORESHARD_ASSIGN(const auto ranks, count_in(row, "ranks"));
      FORESHARD_ASSIGN(const auto nodes, count_in(row, "nodes"));
      if (!ranks) return fault(row.line, "ranks: is missing; an operation has some");
      const bool transfer = *kind == CollectiveKind::kReceive;
      result.collective = comm::MeasuredCollective{
          .operation = transfer ? std::string(program::name_of(CollectiveKind::kSend)) : operation,
          .bytes = bytes,
          .ranks = *ranks,
          .nodes = nodes,
          .time = *time};
      key =
          fmt::format("{} of {} over {} ranks{}", result.collective->operation, format_exact(bytes),
                      *ranks, nodes ? fmt::format(" on {} nodes", *nodes) : "");
    }
    const auto [known, added] = seen_.try_emplace(key, row.line);
    if (!added)
      return fault(row.line, fmt::format("'{}' stands in line {} already; keep one of them", key,
                                         known->second));
    return result;
  }

  const CsvTable& table_;
  std::string_view name_;
  std::map<std::string, std::size_t> seen_;  // key -> its line
};

void give(const std::vector<MeasuredKernel>& kernels, yaml::Ref<NodeConfig>& node) {
  auto& own = node.value.device.value.measured;
  own.insert(own.end(), kernels.begin(), kernels.end());
}

std::string micros(const std::optional<Seconds>& time) {
  return time ? fmt::format("{:.6g}", *time / 1_us) : std::string();
}

}  // namespace

Result<MeasuredTimes> read_measured_times(std::string_view text, std::string_view name) {
  FORESHARD_ASSIGN(const auto table, read_csv(text, name));
  return Reader(table, name).run();
}

std::string to_csv(const MeasuredTimes& times) {
  std::string text = join({kColumns.begin(), kColumns.end()}, ",") + "\n";
  for (const MeasuredRow& row : times.rows) {
    if (row.kernel) {
      text += fmt::format("{},,,,,{},{},{},{}\n", csv_field(row.kernel->kernel),
                          micros(row.kernel->time), micros(row.kernel->low),
                          micros(row.kernel->high), csv_field(row.kernel->source));
    } else {
      const comm::MeasuredCollective& one = *row.collective;
      text += fmt::format(",{},{:.17g},{},{},{},,,\n", one.operation, one.bytes.in_base(),
                          one.ranks, one.nodes ? std::to_string(*one.nodes) : "", micros(one.time));
    }
  }
  return text;
}

void apply(const MeasuredTimes& times, ClusterConfig& cluster, comm::Parameters& communication) {
  std::vector<MeasuredKernel> kernels;
  for (const MeasuredRow& row : times.rows) {
    if (row.kernel) kernels.push_back(*row.kernel);
    if (row.collective) communication.measured.push_back(*row.collective);
  }
  if (cluster.node) give(kernels, *cluster.node);
  for (NodeGroup& group : cluster.groups) give(kernels, group.node);
}

std::vector<std::string> unused_in(const MeasuredTimes& times, const program::Program& program) {
  std::set<std::string> kernels;
  struct Operation {
    std::string name;
    Bytes bytes;
    std::int64_t ranks;
  };
  std::vector<Operation> operations;
  std::set<std::pair<std::int64_t, std::int32_t>> seen;  // block, first rank of a role
  for (const program::Role& role : program.roles) {
    for (const program::Call& call : role.calls) {
      if (!seen.emplace(call.block.index(), role.ranks.front()).second) continue;
      for (const program::Task& task : program.blocks[call.block.index()].tasks) {
        if (const auto* kernel = std::get_if<Kernel>(&task.body)) kernels.insert(describe(*kernel));
        const auto* what = std::get_if<program::Communication>(&task.body);
        if (what == nullptr || program::is_with_host(what->kind)) continue;
        const bool transfer = what->kind == CollectiveKind::kReceive;
        operations.push_back(
            {.name = std::string(program::name_of(transfer ? CollectiveKind::kSend : what->kind)),
             .bytes = what->bytes,
             .ranks = program::size_of(program, what->group, role.ranks.front())});
      }
    }
  }
  std::vector<std::string> unused;
  for (const MeasuredRow& row : times.rows) {
    if (row.kernel && !kernels.contains(row.kernel->kernel))
      unused.push_back(
          fmt::format("{}:{}: no task is '{}'", times.file, row.line, row.kernel->kernel));
    if (!row.collective) continue;
    const comm::MeasuredCollective& one = *row.collective;
    const bool used = std::ranges::any_of(operations, [&](const Operation& operation) {
      return operation.name == one.operation && operation.ranks == one.ranks &&
             std::abs(operation.bytes / one.bytes - 1) <= 1e-3;
    });
    if (!used)
      unused.push_back(fmt::format("{}:{}: no task is '{} of {} over {} ranks'", times.file,
                                   row.line, one.operation, format(one.bytes), one.ranks));
  }
  return unused;
}

Status add_measured(const std::string& file, LoadedStudy& study) {
  FORESHARD_ASSIGN(auto bytes, read_file(file, limits::kLog));
  FORESHARD_ASSIGN(auto times, read_measured_times(bytes, file));
  apply(times, study.cluster, study.communication);
  study.measured = std::move(times);
  study.inputs.push_back({file, std::move(bytes)});
  return {};
}

}  // namespace foreshard::study
