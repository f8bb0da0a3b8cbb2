/// \file
/// Schemas of the JSON that commands write. A result's record (base/record/record.h) has its own;
/// cli/results.cc has a table of them. The Program has no record, because one would make
/// its writer longer (strategies/program/ir/json_write.cc): it has tuples, ranks as text, and tasks
/// of many kinds, whose keys are left out at their defaults. A file in cli/results/ describes such
/// a result: it has the structure of the result itself, with a description in place of each value:
///
///     {"//": "A training step, as `simulate` predicts it.",
///      "schema": "foreshard.prediction/1",
///      "feasible": "boolean: Whether it fits.",
///      "step": {"time_s": "number|null: Time of a step; null if a failure ends it."},
///      "engine": "'fluid'|'simgrid'",                 one of these words
///      "classes": [{"role": "string"}],               a list of such objects
///      "misfits": {"*": "integer"},                   any keys
///      "timing?": {"wall_s": "number"},               not in every result
///      "nearest|null": {"gap": "number"},
///      "breakdown_s": "#times: Where the time goes.", a reference to the definition "#times":
///      "#times": {"*": "number"}}
///
/// Types are the types of JSON Schema, or `any`. Tests check real results against these
/// descriptions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::cli {

/// The JSON Schema of a result, found by its name ("prediction") or by its `schema` key
/// ("foreshard.prediction/1"). It allows no key that is not described.
/// \return nothing if there is no such result.
std::optional<nlohmann::ordered_json> result_schema(std::string_view name);

/// The schemas of results that a command's own file defines.
nlohmann::ordered_json catalog_schema();
nlohmann::ordered_json collectives_schema();
nlohmann::ordered_json operators_schema();
nlohmann::ordered_json reshard_checkpoint_schema();
nlohmann::ordered_json schedules_schema();
nlohmann::ordered_json version_schema();

/// Names of all results: "accuracy", "arrivals" ...
std::vector<std::string> result_names();

}  // namespace foreshard::cli
