// The JSON keys that several results share (records.h), for the writers of sim/ and evidence/.
#include "sim/study/records.h"

#include <algorithm>

#include "base/record/record.h"

namespace foreshard::sim {

const BreakdownPart& dominant(const Breakdown& breakdown, bool with_compute) {
  const std::size_t first = with_compute ? 0 : 1;  // computation comes first
  return *std::ranges::max_element(kBreakdownParts.begin() + first, kBreakdownParts.end(), {},
                                   [&](const BreakdownPart& part) { return breakdown.*part.time; });
}

const record::Record<Breakdown>& record_of(const Breakdown*) {
  static const auto record = [] {
    record::Record<Breakdown> all("breakdown", "Seconds of one device; their sum is the step.");
    for (const BreakdownPart& part : kBreakdownParts) all.append(std::string(part.key), part.time);
    return all;
  }();
  return record;
}

const record::Record<MemoryUse>& record_of(const MemoryUse*) {
  static const auto record = [] {
    record::Record<MemoryUse> all("memory_by_kind", "Bytes of one device at its peak.");
    for (std::size_t kind = 0; kind < kMemoryParts.size(); ++kind)
      all.append(std::string(kMemoryParts[kind]),
                 [kind](const MemoryUse& use) { return use.by_kind[kind]; });
    return all;
  }();
  return record;
}

const record::Record<Warning>& record_of(const Warning*) {
  static const auto record = record::Record<Warning>("warning")
                                 .field("code", &Warning::code, "Stable, for scripts.")
                                 .field("message", &Warning::message);
  return record;
}

}  // namespace foreshard::sim

namespace foreshard::study {

const record::Record<StepKind>& record_of(const StepKind*) {
  static const auto record = [] {
    record::Record<StepKind> all("step_kind", "What errors of predictions go together with.");
    for (const StepProperty& property : step_properties())
      all.append(std::string(property.key), property.value, std::string(property.doc));
    return all;
  }();
  return record;
}

const record::Record<Unmeasured>& record_of(const Unmeasured*) {
  static const auto record =
      record::Record<Unmeasured>("evidence")
          .field(
              "unmeasured_share", &Unmeasured::share,
              "Part of the step, 0 to 1, that rests on parameters which were not measured on its "
              "devices.")
          .field("unmeasured_on", &Unmeasured::on,
                 "The devices without measurements, and where their parameters come from.")
          .field("remarks", &Unmeasured::remarks,
                 "What simulate warns of: no such step, or most of it, was measured.");
  return record;
}

const record::Record<Alternative>& record_of(const Alternative*) {
  static const auto record =
      record::Record<Alternative>("alternative")
          .field("change", &Alternative::change, "Keys of the strategy, as --set takes them.")
          .field("fits", &Alternative::fits)
          .field("peak_bytes", &Alternative::peak)
          .field("capacity_bytes", &Alternative::capacity)
          .field("reserve_bytes", &Alternative::reserve)
          .field("time_s", [](const Alternative& one) {
            return one.fits ? std::optional(one.step) : std::nullopt;
          });
  return record;
}

const record::Record<DrawnSteps>& record_of(const DrawnSteps*) {
  static const auto record =
      record::Record<DrawnSteps>("branches")
          .field("draws", &DrawnSteps::draws, "Steps whose branches were drawn anew (--draws).")
          .field("mean_s", &DrawnSteps::mean)
          .field("p10_s", &DrawnSteps::low, "Percentile.")
          .field("median_s", &DrawnSteps::median)
          .field("p90_s", &DrawnSteps::high);
  return record;
}

}  // namespace foreshard::study
