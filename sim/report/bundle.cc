// Gathers what a bundle holds (bundle.h), for predict.cc, and its keys.
#include "sim/report/bundle.h"

#include <string>

#include "base/record/record.h"

#include "sim/study/records.h"

namespace foreshard::sim {

const record::Record<LinkGroupUse>& record_of(const LinkGroupUse*) {
  static const auto record =
      record::Record<LinkGroupUse>("link_group", "Like links, in one direction.")
          .field("what", &LinkGroupUse::what)
          .field("links", &LinkGroupUse::links)
          .field("bandwidth_bytes_per_s", &LinkGroupUse::bandwidth)
          .field("most_bytes", &LinkGroupUse::most, "Payload over the busiest of them in a step.")
          .field("mean_bytes", &LinkGroupUse::mean);
  return record;
}

}  // namespace foreshard::sim

namespace foreshard::report {

// A column for each kind of memory. A sample holds until the time of the next sample.
const record::Record<MemoryCurve>& record_of(const MemoryCurve*) {
  static const auto record = [] {
    auto all = record::Record<MemoryCurve>("memory_curve", "Live bytes of a class over the step.")
                   .field("class", &MemoryCurve::device_class, "Index into classes.")
                   .field("time_s", [](const MemoryCurve& curve) {
                     std::vector<Seconds> times;
                     for (const memory::Sample& sample : curve.samples)
                       times.push_back(sample.time);
                     return times;
                   });
    for (std::size_t kind = 0; kind < sim::kMemoryParts.size(); ++kind)
      all.append(std::string(sim::kMemoryParts[kind]) + "_bytes", [kind](const MemoryCurve& curve) {
        std::vector<Bytes> live;
        for (const memory::Sample& sample : curve.samples) live.push_back(sample.live[kind]);
        return live;
      });
    return all;
  }();
  return record;
}

Bundle bundle_of(const sim::Prediction& prediction, const program::Program& program) {
  Bundle bundle{.model_flops = program.totals.model_flops,
                .executed_flops = prediction.executed_flops,
                .link_groups = prediction.link_groups,
                .time_line = time_line_of(prediction, program)};
  for (std::size_t c = 0; c < prediction.classes.size(); ++c)
    bundle.memory_over_time.push_back(
        {static_cast<std::int32_t>(c), prediction.classes[c].memory.curve});
  return bundle;
}

const record::Record<Bundle>& record_of(const Bundle*) {
  static const auto record =
      record::Record<Bundle>("bundle", "For pictures: simulate --bundle.")
          .field("model_flops", &Bundle::model_flops,
                 "As in MFU: each pass once, attention in full; all devices.")
          .field("executed_flops", &Bundle::executed_flops,
                 "All kernels of all devices as they run: recomputation included, attention "
                 "without what its "
                 "mask leaves out.")
          .field("link_groups", &Bundle::link_groups, "The busiest first.")
          .field("memory_over_time", &Bundle::memory_over_time)
          .field("time_line", &Bundle::time_line);
  return record;
}

}  // namespace foreshard::report
