/// \file
/// The kinds of tables, each as jobs that give one Outcome per row.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/result.h"

#include "sim/study/interval.h"
#include "strategies/comm/parameters.h"
#include "topology/cluster_config.h"
#include "validate/tables/exclusions.h"
#include "validate/tables/kernel_rows.h"
#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

/// What jobs may use; must outlive them.
struct Context {
  std::vector<std::filesystem::path> catalogue;
  comm::Parameters communication;
  study::ParameterErrors errors;
  Exclusions exclusions{};
  const ClusterConfig* machine = nullptr;  ///< Of tables of collectives; null: as the rows say.
};

/// Some measurements of a table that are predicted together. Jobs do not depend on each other.
struct Job {
  std::vector<std::size_t> places;  ///< Of the outcomes, among those of the table.
  std::function<std::vector<Outcome>()> run;
};

struct Jobs {
  std::vector<Job> jobs;
  std::size_t outcomes = 0;  ///< Measurements of the table; a row may have several.
};

struct Table {
  std::filesystem::path path;
  CsvTable cells;
};

struct TableKind {
  std::string_view name;
  std::vector<std::string_view> columns;  ///< By which a header is known.
  std::function<Result<Jobs>(const Table& table, const Context& context)> jobs;
};

bool is_collectives(const CsvTable& table);
Result<Jobs> collective_jobs(const Table& table, const Context& context);
Jobs kernel_jobs(const Table& table, const Context& context, const KernelFormat& format);

}  // namespace foreshard::accuracy
