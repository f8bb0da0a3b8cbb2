/// \file
/// What commands write as JSON, described. A file of cli/results/ has the form of the result
/// itself, and says in place of each value what stands there:
///
///     {"//": "A training step, as `simulate` predicts it.",
///      "schema": "foreshard.prediction/1",
///      "feasible": "boolean: Whether it fits.",
///      "step": {"time_s": "number|null: Time of a step; null if a failure ends it."},
///      "engine": "'fluid'|'simgrid'",                 one of these words
///      "classes": [{"role": "string"}],               a list of such
///      "misfits": {"*": "integer"},                   any keys
///      "timing?": {"wall_s": "number"},               not in every result
///      "nearest|null": {"gap": "number"},
///      "breakdown_s": "#times: Where the time goes.", as "#times" says:
///      "#times": {"*": "number"}}
///
/// Types are those of JSON Schema, or `any`. The tests hold real results to these descriptions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::cli {

/// The JSON Schema of a result, by its name ("prediction") or what it says under `schema`
/// ("foreshard.prediction/1"). It allows no key that is not described.
/// \return nothing if there is no such result.
std::optional<nlohmann::ordered_json> result_schema(std::string_view name);

/// "accuracy", "arrivals" ...
std::vector<std::string> result_names();

}  // namespace foreshard::cli
