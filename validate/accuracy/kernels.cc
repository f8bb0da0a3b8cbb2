// Single kernels in a burst beside their time alone on an idle device.
#include <fmt/format.h>
#include <map>
#include <memory>

#include "base/yaml/loader.h"

#include "sim/compute/operator_time.h"
#include "validate/accuracy/catalogue_names.h"
#include "validate/accuracy/cells.h"
#include "validate/accuracy/table.h"

namespace foreshard::accuracy {
namespace {

struct Row {
  std::string id, source, gpu;
  std::optional<Kernel> kernel;
  std::string reason;  ///< Why there is no kernel.
  double time_us = 0;
};

std::optional<DType> dtype_named(std::string_view name) {
  if (name == "bfloat16" || name == "bf16") return DType::kBf16;
  if (name == "float16" || name == "fp16" || name == "half") return DType::kFp16;
  if (name == "fp8") return DType::kFp8;
  if (name == "float32" || name == "fp32") return DType::kFp32;
  if (name == "tf32") return DType::kTf32;
  return std::nullopt;
}

// Column `dtype`; bf16 where the table has none. `row` learns why not.
DType dtype_of(const Cells& cells, Row& row) {
  const std::string& text = cells.text("dtype");
  if (text.empty()) return DType::kBf16;
  if (const auto dtype = dtype_named(text)) return *dtype;
  row.reason = fmt::format("dtype '{}' is not modelled", text);
  return DType::kBf16;
}

Kernel gemm(Cells& cells, Row& row) {
  return Gemm{.m = cells.required_integer("m"),
              .n = cells.required_integer("n"),
              .k = cells.required_integer("k"),
              .dtype = dtype_of(cells, row)};
}

Kernel attention(Cells& cells, Row& row) {
  const std::int64_t length = cells.required_integer("seqlen");
  const std::int64_t heads = cells.required_integer("q_heads");
  return Attention{.batch = cells.required_integer("batch"),
                   .query_heads = heads,
                   .kv_heads = cells.integer("kv_heads").value_or(heads),
                   .query_length = length,
                   .key_length = length,
                   .head_dim = cells.required_integer("head_dim"),
                   .causal = cells.text("causal") != "0",
                   .direction = Direction::kForward,
                   .dtype = dtype_of(cells, row)};
}

Outcome outcome_of(const Row& row, const Result<DeviceType>& device, bool guessed) {
  Outcome result;
  result.id = row.id;
  result.family = family_of(row.source);
  result.measured = (row.time_us * 1_us).in_base();
  if (!device || !row.kernel) {
    result.status = Status::kUnsupported;
    result.reason = device ? row.reason : device.error().message;
    return result;
  }
  if (guessed) result.assumed.emplace_back("gpu_memory");
  result.predicted = time_of(*row.kernel, *device, Duty::kBurst).total().in_base();
  return result;
}

Result<std::vector<Job>> kernel_jobs(const Table& table, const Context& context,
                                     Kernel (*kernel_of)(Cells&, Row&)) {
  const std::string name = table.path.string();
  if (auto error = missing_columns(table.cells, name, {"source", "gpu"})) return *std::move(error);
  std::map<std::string, std::pair<std::vector<std::size_t>, std::vector<Row>>> devices;
  for (std::size_t i = 0; i < table.cells.rows.size(); ++i) {
    const auto& line = table.cells.rows[i];
    Cells cells(table.cells, line, name);
    Row row;
    row.id = cells.text("id").empty()
                 ? fmt::format("{}:{}", table.path.filename().string(), line.line)
                 : cells.text("id");
    row.source = cells.text("source");
    row.gpu = cells.text("gpu");
    row.time_us = cells.required("time_us");
    const Kernel kernel = kernel_of(cells, row);
    if (row.reason.empty()) row.kernel = kernel;
    if (cells.error()) return *cells.error();
    auto& [places, rows] = devices[row.gpu];
    places.push_back(i);
    rows.push_back(std::move(row));
  }
  std::vector<Job> jobs;
  jobs.reserve(devices.size());
  for (auto& [gpu, members] : devices) {
    jobs.push_back(
        {std::move(members.first), [gpu = gpu, rows = std::move(members.second), &context] {
           const auto named = device_named(gpu, std::nullopt);
           yaml::Loader loader({.catalogue = context.catalogue});
           const auto device = named
                                   ? loader.read_ref<DeviceType>(named->name)
                                   : Result<DeviceType>(Error{
                                         Error::Code::kUnsupported,
                                         fmt::format("device '{}' is not in the catalogue", gpu)});
           std::vector<Outcome> outcomes;
           for (const Row& row : rows)
             outcomes.push_back(outcome_of(row, device, named && named->guessed_memory));
           return outcomes;
         }});
  }
  return jobs;
}

}  // namespace

bool is_gemm(const CsvTable& table) {
  return table.column("m") && table.column("n") && table.column("k") && table.column("time_us") &&
         !table.column("op");
}

bool is_attention(const CsvTable& table) {
  return table.column("seqlen") && table.column("q_heads") && table.column("head_dim") &&
         table.column("time_us");
}

Result<std::vector<Job>> gemm_jobs(const Table& table, const Context& context) {
  return kernel_jobs(table, context, gemm);
}

Result<std::vector<Job>> attention_jobs(const Table& table, const Context& context) {
  return kernel_jobs(table, context, attention);
}

}  // namespace foreshard::accuracy
