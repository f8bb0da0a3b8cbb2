/// \file
/// The kinds of tables, each as jobs that give one Outcome per row.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "base/csv.h"
#include "base/result.h"

#include "strategies/comm/parameters.h"
#include "topology/cluster_config.h"
#include "validate/accuracy/exclusions.h"
#include "validate/accuracy/outcome.h"

namespace foreshard::accuracy {

/// What jobs may use; must outlive them.
struct Context {
  std::vector<std::filesystem::path> catalogue;
  comm::Parameters communication;
  Exclusions exclusions{};
  const ClusterConfig* machine = nullptr;  ///< Of tables of collectives; null: as the rows say.
};

/// Some rows of a table that are predicted together: outcomes[i] is of row first + i. Jobs do not
/// depend on each other.
struct Job {
  std::vector<std::size_t> rows;
  std::function<std::vector<Outcome>()> run;
};

struct Table {
  std::filesystem::path path;
  CsvTable cells;
};

struct TableKind {
  std::string_view name;
  std::string_view columns;  ///< By which a header is known; shown to people.
  bool (*is)(const CsvTable& table);
  Result<std::vector<Job>> (*jobs)(const Table& table, const Context& context);
};

bool is_training(const CsvTable& table);
bool is_collectives(const CsvTable& table);
bool is_gemm(const CsvTable& table);
bool is_attention(const CsvTable& table);
Result<std::vector<Job>> training_jobs(const Table& table, const Context& context);
Result<std::vector<Job>> collective_jobs(const Table& table, const Context& context);
Result<std::vector<Job>> gemm_jobs(const Table& table, const Context& context);
Result<std::vector<Job>> attention_jobs(const Table& table, const Context& context);

/// The source without the path inside it: "owner/name@commit:path" -> "owner/name@commit".
std::string family_of(std::string_view source);

}  // namespace foreshard::accuracy
