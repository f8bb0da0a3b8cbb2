#include "sim/report/csv.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string_view>

#include "base/csv.h"
#include "base/text.h"

#include "sim/report/parts.h"
#include "sim/study/evidence.h"

namespace foreshard::report {
namespace {

class Line {
 public:
  void add(std::string_view key, std::string_view value) {
    const char* separator = header_.empty() ? "" : ",";
    header_ += separator + csv_field(key);
    values_ += separator + csv_field(value);
  }
  void add(std::string_view key, double value) { add(key, fmt::format("{}", value)); }
  void add(std::string_view key, std::int64_t value) { add(key, fmt::format("{}", value)); }
  std::string text() const { return header_ + "\n" + values_ + "\n"; }

 private:
  std::string header_;
  std::string values_;
};

}  // namespace

std::string to_csv(const Report& report) {
  const sim::Prediction& prediction = report.prediction;
  // A step that never ends has infinite time and zero throughput.
  constexpr double kForEver = std::numeric_limits<double>::infinity();
  const bool ends = !prediction.interruption;
  const double step = ends ? prediction.step.in_base() : kForEver;
  Line line;
  line.add("study", report.subject.name);
  line.add("devices", prediction.devices);
  line.add("time_s", step);
  line.add("low_s", ends ? prediction.low.in_base() : kForEver);
  line.add("high_s", ends ? prediction.high.in_base() : kForEver);
  line.add("samples_per_s", prediction.samples / step);
  if (prediction.tokens > 0)
    line.add("tokens_per_s", prediction.tokens / step);
  else
    line.add("tokens_per_s", "");
  line.add("model_tflops_per_gpu", prediction.model_tflops_per_device);
  line.add("mfu", prediction.mfu);
  for (const Part& part : kParts)
    line.add(fmt::format("{}_s", part.key), (prediction.breakdown.*part.time).in_base());
  if (!prediction.classes.empty()) {
    const auto& worst = prediction.classes[static_cast<std::size_t>(prediction.worst_memory)];
    line.add("peak_bytes", static_cast<std::int64_t>(std::llround(worst.memory.peak.in_base())));
  }
  line.add("capacity_bytes",
           static_cast<std::int64_t>(std::llround(prediction.memory_capacity.in_base())));
  line.add("reserve_bytes",
           static_cast<std::int64_t>(std::llround(prediction.memory_reserve.in_base())));
  const sim::Expense& expense = prediction.expense;
  line.add("usd_per_step", expense.usd() ? fmt::format("{}", *expense.usd() / 1_USD) : "");
  line.add("kwh_per_step", expense.energy ? fmt::format("{}", *expense.energy / 1_kWh) : "");
  line.add("co2_kg_per_step", expense.carbon ? fmt::format("{}", *expense.carbon / 1_kg) : "");
  line.add("training_steps",
           prediction.training ? fmt::format("{}", prediction.training->steps) : "");
  line.add("fits", prediction.fits ? "true" : "false");
  line.add("engine", prediction.engine);
  line.add("granularity", prediction.granularity);
  line.add("idle_devices", prediction.idle);
  line.add("down_devices", prediction.down);
  const study::Unmeasured unmeasured = study::unmeasured_in(prediction);
  line.add("unmeasured_share", unmeasured.share);
  line.add("evidence", join(unmeasured.remarks, "; "));
  return line.text();
}

}  // namespace foreshard::report
