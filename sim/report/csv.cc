// The CSV of `foreshard simulate` (csv.h). Columns take their values from the report's JSON.
#include "sim/report/csv.h"

#include "base/record/csv.h"
#include "base/record/record.h"

#include "sim/report/json.h"
#include "sim/study/records.h"

namespace foreshard::report {
namespace {

std::vector<record::Column> prediction_columns() {
  std::vector<record::Column> all{{"study", "study/name"},
                                  {"devices", "study/devices"},
                                  {"time_s", "step/time_s"},
                                  {"low_s", "step/low_s"},
                                  {"high_s", "step/high_s"},
                                  {"samples_per_s", "throughput/samples_per_s"},
                                  {"tokens_per_s", "throughput/tokens_per_s"},
                                  {"model_tflops_per_gpu", "throughput/model_tflops_per_gpu"},
                                  {"mfu", "throughput/mfu"}};
  for (const sim::BreakdownPart& part : sim::kBreakdownParts)
    all.push_back({std::string(part.key) + "_s", "breakdown_s/" + std::string(part.key)});
  const std::vector<record::Column> rest{{"peak_bytes", "memory/peak_bytes"},
                                         {"capacity_bytes", "memory/capacity_bytes"},
                                         {"reserve_bytes", "memory/reserve_bytes"},
                                         {"usd_per_step", "cost/usd_per_step"},
                                         {"kwh_per_step", "cost/kwh_per_step"},
                                         {"co2_kg_per_step", "cost/co2_kg_per_step"},
                                         {"training_steps", "cost/training/steps"},
                                         {"fits", "memory/fits"},
                                         {"engine", "engine/name"},
                                         {"granularity", "engine/granularity"},
                                         {"idle_devices", "study/idle_devices"},
                                         {"down_devices", "study/down_devices"},
                                         {"unmeasured_share", "step/evidence/unmeasured_share"},
                                         {"evidence", "step/evidence/remarks"}};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

}  // namespace

std::string to_csv(const Report& report) {
  record::Json row = record::write(report);
  if (report.prediction.interruption)  // JSON has no infinity
    for (const char* key : {"time_s", "low_s", "high_s"}) row["step"][key] = "inf";
  return record::csv(prediction_columns(), std::span(&row, 1));
}

}  // namespace foreshard::report
