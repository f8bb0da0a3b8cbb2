#include "strategies/conversion/explain.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"

namespace foreshard::conversion {
namespace {

using record::Record;

Bytes bytes(std::int64_t count) {
  return static_cast<double>(count) * 1_B;
}

std::string interval_text(const Box& box) {
  std::vector<std::string> ranges;
  for (std::size_t d = 0; d < box.begin.size(); ++d)
    ranges.push_back(fmt::format("{}:{}", box.begin[d], box.end[d]));
  return fmt::format("[{}]", fmt::join(ranges, ", "));
}

Error loss_of(const Conversion& conversion) {
  constexpr std::size_t kShown = 6;
  std::string text =
      fmt::format("{} slices are lost with the devices that are down:", conversion.lost.size());
  for (std::size_t i = 0; i < std::min(kShown, conversion.lost.size()); ++i)
    text += fmt::format("\n  {} of {}", interval_text(conversion.lost[i].box),
                        conversion.lost[i].tensor);
  if (conversion.lost.size() > kShown)
    text += fmt::format("\n  ... ({} more)", conversion.lost.size() - kShown);
  text += "\nno other device has a copy: go back to a checkpoint for them (reshard --checkpoint)";
  return {Error::Code::kInfeasible, std::move(text)};
}

// The device with the largest value of `of`; ties: the first.
template <class Of>
const DeviceTraffic* most(const Conversion& conversion, const Of& of) {
  const DeviceTraffic* best = nullptr;
  for (const DeviceTraffic& device : conversion.devices)
    if (best == nullptr || of(device) > of(*best)) best = &device;
  return best;
}

}  // namespace

Result<Explanation> explain(Conversion conversion, const CostModel& cost,
                            const ClusterView& cluster) {
  if (!conversion.lost.empty()) return loss_of(conversion);
  Explanation result{.cluster = cluster.name(), .conversion = std::move(conversion)};
  const Conversion& known = result.conversion;
  if (!known.transfers.empty()) {
    std::vector<DeviceTransfer> transfers;
    transfers.reserve(known.transfers.size());
    for (const Transfer& transfer : known.transfers)
      transfers.push_back({DeviceId{transfer.from}, DeviceId{transfer.to}, bytes(transfer.bytes)});
    FORESHARD_ASSIGN(result.closed_form, cost.exchange_time(transfers));
    const auto program = program_of(known, "conversion");
    FORESHARD_CHECK(program.has_value());
    if (static_cast<std::int64_t>(known.transfers.size()) <= kMostSimulated) {
      FORESHARD_ASSIGN(result.simulated, cost.program_time(*program));
    }
    FORESHARD_ASSIGN(const auto loads, cost.link_bytes(*program));
    for (const LinkBytes& load : loads) {
      const Link& link = cluster.links()[load.link.index()];
      result.links.push_back({.from = cluster.vertices()[link.from.index()].name,
                              .to = cluster.vertices()[link.to.index()].name,
                              .bytes = load.bytes,
                              .time = load.bytes / link.bandwidth});
    }
    std::ranges::stable_sort(result.links, std::greater<>{}, &Explanation::LinkUse::time);
  }
  const auto fullness = [&](const DeviceTraffic& d) {
    return bytes(d.peak()) / cluster.type_of(DeviceId{d.device}).memory.value;
  };
  if (const auto* fullest = most(known, fullness)) {
    result.fullest_device = fullest->device;
    result.peak_memory = bytes(fullest->peak());
    result.memory_capacity = cluster.type_of(DeviceId{fullest->device}).memory.value;
  }
  return result;
}

std::string to_text(const Explanation& e) {
  const Conversion& c = e.conversion;
  std::string text =
      fmt::format("{} on {}\n  from {}\n  to   {}\n", e.model, e.cluster, e.from, e.to);
  if (!e.down.empty()) text += fmt::format("  down {}\n", describe_ranks(e.down));
  text += fmt::format("\n  {} {}: {} move, {} stay where they are\n", c.tensors,
                      plural(c.tensors, "tensor"), format(bytes(c.bytes_moved)),
                      format(bytes(c.bytes_staying)));
  if (c.tensors_dropped > 0)
    text += fmt::format("  {} {} of {} no longer needed\n", c.tensors_dropped,
                        plural(c.tensors_dropped, "tensor"), format(bytes(c.bytes_dropped)));
  const std::string memory = fmt::format(
      "  peak memory of old and new slices: {} of {} on device {}{}\n", format(e.peak_memory),
      format(e.memory_capacity), e.fullest_device,
      e.peak_memory > e.memory_capacity ? "; it does not fit: convert through a checkpoint" : "");
  if (c.transfers.empty()) return text + "  nothing is sent\n" + memory;
  text += fmt::format("  {} {} between {} {} of devices, as one exchange\n", c.messages,
                      plural(c.messages, "slice"), c.transfers.size(),
                      plural(std::ssize(c.transfers), "pair"));
  text += e.simulated ? fmt::format("  simulated {} (closed form {})\n", format(*e.simulated),
                                    format(*e.closed_form))
                      : fmt::format("  closed form {}; not simulated: more than {} pairs\n",
                                    format(*e.closed_form), kMostSimulated);
  const auto* sends = most(c, [](const DeviceTraffic& d) { return d.sent; });
  const auto* receives = most(c, [](const DeviceTraffic& d) { return d.received; });
  text +=
      fmt::format("  most is sent by device {}: {}; received by device {}: {}\n", sends->device,
                  format(bytes(sends->sent)), receives->device, format(bytes(receives->received)));
  text += memory;
  constexpr std::size_t kMostLinks = 8;
  text += "\n  busiest links\n";
  for (std::size_t i = 0; i < std::min(kMostLinks, e.links.size()); ++i) {
    const auto& link = e.links[i];
    text += fmt::format("    {:<40} {:>10} {:>10}\n", link.from + " -> " + link.to,
                        format(link.bytes), format(link.time));
  }
  return text;
}

const Record<DeviceTraffic>& record_of(const DeviceTraffic*) {
  static const auto record =
      Record<DeviceTraffic>("device")
          .field("device", &DeviceTraffic::device)
          .field("before_bytes", &DeviceTraffic::before)
          .field("after_bytes", &DeviceTraffic::after)
          .field("stays_bytes", &DeviceTraffic::stays, "Bytes of new slices that it has already.")
          .field("sent_bytes", &DeviceTraffic::sent)
          .field("received_bytes", &DeviceTraffic::received)
          .field("peak_bytes", &DeviceTraffic::peak, "Old and new slices side by side.");
  return record;
}

const Record<Explanation::LinkUse>& record_of(const Explanation::LinkUse*) {
  using Use = Explanation::LinkUse;
  static const auto record = Record<Use>("link")
                                 .field("from", &Use::from)
                                 .field("to", &Use::to)
                                 .field("bytes", record::at<&Use::bytes, &Bytes::in_base>)
                                 .field("time_s", &Use::time);
  return record;
}

const Record<Explanation>& record_of(const Explanation*) {
  using E = Explanation;
  using C = Conversion;
  using record::at;
  static const auto record =
      Record<E>::result("foreshard.reshard_strategy/1",
                        "What moves when the strategy or the cluster changes, as `reshard "
                        "--from-strategy` plans it (docs/checkpoint.md).")
          .field("model", &E::model)
          .field("cluster", &E::cluster)
          .field("from", &E::from)
          .field("to", &E::to)
          .field("down", &E::down, "Devices that are down.")
          .field("tensors", at<&E::conversion, &C::tensors>)
          .field("tensors_dropped", at<&E::conversion, &C::tensors_dropped>)
          .field("bytes_moved", at<&E::conversion, &C::bytes_moved>)
          .field("bytes_staying", at<&E::conversion, &C::bytes_staying>)
          .field("bytes_dropped", at<&E::conversion, &C::bytes_dropped>)
          .field("slices_sent", at<&E::conversion, &C::messages>)
          .field(
              "pairs", [](const E& e) { return e.conversion.transfers.size(); },
              "Pairs of devices between which slices are sent.")
          .field("closed_form_s", &E::closed_form)
          .field("simulated_s", &E::simulated)
          .field("peak_memory_bytes", at<&E::peak_memory, &Bytes::in_base>)
          .field("memory_capacity_bytes", at<&E::memory_capacity, &Bytes::in_base>)
          .field("devices", at<&E::conversion, &C::devices>)
          .field("links", &E::links);
  return record;
}

std::string to_json(const Explanation& e) {
  return record::text_of(record::write(e), 2);
}

std::string to_csv(const Explanation& e) {
  const record::Json devices = record::write(e)["devices"];
  return record::csv({{"device"},
                      {"before_bytes"},
                      {"after_bytes"},
                      {"stays_bytes"},
                      {"sent_bytes"},
                      {"received_bytes"},
                      {"peak_bytes"}},
                     devices.get_ref<const record::Json::array_t&>());
}

}  // namespace foreshard::conversion
