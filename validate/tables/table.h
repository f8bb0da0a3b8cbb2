/// \file
/// Turns tables of measurements into jobs that predict their rows and return Outcomes: the types
/// that all kinds of tables share, and the functions for collectives and kernels (for training
/// steps, see evidence/training.h). evidence/accuracy.cc recognises each table's kind and runs its
/// jobs.
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
#include "validate/tables/collective_rows.h"
#include "validate/tables/kernel_rows.h"
#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

/// Data that all jobs share; it must outlive them.
struct Context {
  std::vector<std::filesystem::path> catalogue;
  comm::Parameters communication;
  bool communication_is_given = false;  ///< It replaces that of studies, too.
  study::ParameterErrors errors;
  Exclusions exclusions{};
  /// Cluster on which all collectives were measured; null: the machines that the rows state.
  const ClusterConfig* machine = nullptr;
  std::vector<KernelFormat> kernel_formats{};
  study::MeasuredSteps measured_steps{};  ///< The catalogue's, for blind intervals.
};

/// Measurements of a table that are predicted together. Jobs do not depend on each other.
struct Job {
  std::vector<std::size_t> places;  ///< outcome of `run` -> index among the table's outcomes
  std::function<std::vector<Outcome>()> run;
};

struct Jobs {
  std::vector<Job> jobs;
  std::size_t outcomes = 0;  ///< Number of measurements in the table; a row may have several.
};

struct Table {
  std::filesystem::path path;
  CsvTable cells;
};

/// Columns that every table of collectives has.
const std::vector<std::string>& collective_columns();
/// One job for each group of rows with equal setups (CollectiveRow::setup).
/// \return Errors of collective_rows() and machines_beside().
Result<Jobs> collective_jobs(const Table& table, const Context& context);
/// One job for each device name in the table.
Jobs kernel_jobs(const Table& table, const Context& context, const KernelFormat& format);

}  // namespace foreshard::accuracy
