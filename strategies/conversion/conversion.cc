#include "strategies/conversion/conversion.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"

namespace foreshard::conversion {
namespace {

// The slices that all tensors of one shape and layout share. Boxes exclude elements beyond the
// unpadded shape.
struct Slices {
  Layout layout;
  Shape shape;
  Shape unpadded;
  std::vector<Box> boxes{};  // distinct and not empty
  struct SliceHolder {
    std::int32_t device;
    std::int32_t box;  // index into `boxes`; -1: empty
  };
  std::vector<SliceHolder> holders{};  // in the order of the mesh
  // box -> devices that have it, ascending, without devices that are down
  std::vector<std::vector<std::int32_t>> of_box{};
  std::vector<std::int64_t> stored{};  // one per holder: elements, padding included
};

// A piece of a target box, and the source box that contains it.
struct Piece {
  std::int32_t source = 0;  // index into the source's boxes
  std::int64_t elements = 0;
};

std::int64_t bytes_of(DType dtype, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(size_of(dtype).in_base());
}

bool overlap(const Box& a, const Box& b) {
  for (std::size_t d = 0; d < a.begin.size(); ++d)
    if (a.begin[d] >= b.end[d] || b.begin[d] >= a.end[d]) return false;
  return true;
}

// The slices of every distinct shape and layout, computed once.
class SliceTable {
 public:
  SliceTable(const std::vector<std::int32_t>& device_of_rank, std::set<std::int32_t> down)
      : device_of_rank_(device_of_rank), down_(std::move(down)) {}

  std::size_t of(const PlacedTensor& tensor) {
    for (std::size_t i = entries_.size(); i-- > 0;)
      if (entries_[i].shape == tensor.shape && entries_[i].unpadded == tensor.unpadded &&
          entries_[i].layout == tensor.layout)
        return i;
    entries_.push_back(make(tensor));
    return entries_.size() - 1;
  }
  const Slices& operator[](std::size_t index) const { return entries_[index]; }

 private:
  Slices make(const PlacedTensor& tensor) const {
    Slices slices{.layout = tensor.layout, .shape = tensor.shape, .unpadded = tensor.unpadded};
    const Box logical = whole_of(tensor.unpadded);
    std::map<Box, std::int32_t> known;
    for (std::int64_t p = 0; p < tensor.layout.mesh.size(); ++p) {
      const auto rank = tensor.layout.mesh.ranks[static_cast<std::size_t>(p)];
      const std::int32_t device =
          device_of_rank_.empty() ? rank : device_of_rank_[static_cast<std::size_t>(rank)];
      const Box slice = slice_of(tensor.layout, tensor.shape, p);
      slices.stored.push_back(slice.elements());
      const Box box = intersection(slice, logical);
      if (box.elements() == 0) {
        slices.holders.push_back({device, -1});
        continue;
      }
      const auto [it, is_new] = known.emplace(box, static_cast<std::int32_t>(known.size()));
      if (is_new) {
        slices.boxes.push_back(box);
        slices.of_box.emplace_back();
      }
      slices.holders.push_back({device, it->second});
      if (!down_.contains(device))
        slices.of_box[static_cast<std::size_t>(it->second)].push_back(device);
    }
    for (auto& devices : slices.of_box) std::ranges::sort(devices);
    return slices;
  }

  const std::vector<std::int32_t>& device_of_rank_;
  std::set<std::int32_t> down_;
  std::vector<Slices> entries_;
};

class Planner {
 public:
  Planner(const Phase& from, const Phase& to, const Options& options)
      : from_(from),
        to_(to),
        options_(options),
        sources_(from.device_of_rank, {options.down.begin(), options.down.end()}),
        targets_(to.device_of_rank, {}) {}

  Result<Conversion> run() {
    std::map<std::string_view, const PlacedTensor*> sources;
    for (const PlacedTensor& tensor : from_.tensors) {
      sources[tensor.name] = &tensor;
      const Slices& slices = sources_[sources_.of(tensor)];
      for (std::size_t h = 0; h < slices.holders.size(); ++h)
        if (!is_down(slices.holders[h].device))
          traffic(slices.holders[h].device).before += bytes_of(tensor.dtype, slices.stored[h]);
    }
    for (const PlacedTensor& tensor : to_.tensors) {
      const auto it = sources.find(tensor.name);
      if (it == sources.end())
        return fault(
            fmt::format("tensor '{}' of the second strategy does not exist under the first; a "
                        "strategy of mode: forward keeps only parameters",
                        tensor.name));
      if (const auto why = mismatch(*it->second, tensor)) return fault(*why);
      add(*it->second, tensor);
      sources.erase(it);
    }
    for (const auto& [name, tensor] : sources) {
      ++result_.tensors_dropped;
      result_.bytes_dropped += bytes_of(tensor->dtype, whole_of(tensor->unpadded).elements());
    }
    return finish();
  }

 private:
  static Error fault(std::string why) { return {Error::Code::kInvalidInput, std::move(why)}; }

  static std::optional<std::string> mismatch(const PlacedTensor& from, const PlacedTensor& to) {
    if (from.dtype != to.dtype)
      return fmt::format(
          "tensor '{}' is {} under the first strategy and {} under the second; a "
          "conversion does not change the type of elements: give both the same "
          "precision",
          to.name, name_of(from.dtype), name_of(to.dtype));
    if (from.unpadded != to.unpadded)
      return fmt::format("tensor '{}' is [{}] under the first strategy and [{}] under the second",
                         to.name, fmt::join(from.unpadded, ","), fmt::join(to.unpadded, ","));
    return std::nullopt;
  }

  bool is_down(std::int32_t device) const {
    return std::ranges::find(options_.down, device) != options_.down.end();
  }
  DeviceTraffic& traffic(std::int32_t device) {
    DeviceTraffic& entry = devices_[device];
    entry.device = device;
    return entry;
  }
  std::int32_t node(std::int32_t device) const {
    return options_.node_of_device.empty()
               ? 0
               : options_.node_of_device[static_cast<std::size_t>(device)];
  }

  // target box -> the source boxes that make it up.
  const std::vector<std::vector<Piece>>& pieces(std::size_t source, std::size_t target) {
    const auto [it, is_new] = pieces_.try_emplace({source, target});
    if (!is_new) return it->second;
    const Slices& from = sources_[source];
    for (const Box& box : targets_[target].boxes) {
      std::vector<Piece> list;
      for (std::size_t b = 0; b < from.boxes.size(); ++b)
        if (overlap(from.boxes[b], box))
          list.push_back(
              {static_cast<std::int32_t>(b), intersection(from.boxes[b], box).elements()});
      it->second.push_back(std::move(list));
    }
    return it->second;
  }

  void add(const PlacedTensor& from, const PlacedTensor& to) {
    ++result_.tensors;
    const std::size_t source_index = sources_.of(from);
    const std::size_t target_index = targets_.of(to);
    const Slices& source = sources_[source_index];
    const Slices& target = targets_[target_index];
    const auto& pieces_of = pieces(source_index, target_index);
    std::unordered_map<std::int32_t, std::int32_t> own;  // device -> its source box
    for (const auto& holder : source.holders)
      if (holder.box >= 0 && !is_down(holder.device)) own[holder.device] = holder.box;
    std::set<std::int32_t> lost;  // source boxes
    for (std::size_t h = 0; h < target.holders.size(); ++h) {
      const auto& holder = target.holders[h];
      DeviceTraffic& receiver = traffic(holder.device);
      receiver.after += bytes_of(to.dtype, target.stored[h]);
      if (holder.box < 0) continue;
      const auto it = own.find(holder.device);
      const std::int32_t mine = it == own.end() ? -1 : it->second;
      const auto box = static_cast<std::size_t>(holder.box);
      if (mine >= 0 && from.shape == to.shape &&
          source.boxes[static_cast<std::size_t>(mine)] == target.boxes[box])
        receiver.unchanged += bytes_of(to.dtype, target.stored[h]);
      for (const Piece& piece : pieces_of[box]) {
        const std::int64_t bytes = bytes_of(to.dtype, piece.elements);
        if (piece.source == mine) {
          receiver.stays += bytes;
          result_.bytes_staying += bytes;
          continue;
        }
        const auto& senders = source.of_box[static_cast<std::size_t>(piece.source)];
        if (senders.empty()) {
          lost.insert(piece.source);
          continue;
        }
        send(senders, holder.device, bytes);
      }
    }
    for (const std::int32_t box : lost)
      result_.lost.push_back({to.name, source.boxes[static_cast<std::size_t>(box)]});
  }

  void send(const std::vector<std::int32_t>& senders, std::int32_t to, std::int64_t bytes) {
    std::int32_t best = senders.front();
    bool best_near = false;
    std::int64_t best_sent = 0;
    bool any = false;
    for (const std::int32_t device : senders) {
      const bool near = node(device) == node(to);
      const std::int64_t sent = traffic(device).sent;
      if (any && (near < best_near || (near == best_near && sent >= best_sent))) continue;
      best = device;
      best_near = near;
      best_sent = sent;
      any = true;
    }
    traffic(best).sent += bytes;
    traffic(to).received += bytes;
    transfers_[{best, to}] += bytes;
    result_.bytes_moved += bytes;
    ++result_.messages;
  }

  Conversion finish() {
    for (const auto& [pair, bytes] : transfers_)
      result_.transfers.push_back({pair.first, pair.second, bytes});
    for (const auto& [device, traffic] : devices_) result_.devices.push_back(traffic);
    return std::move(result_);
  }

  const Phase& from_;
  const Phase& to_;
  const Options& options_;
  SliceTable sources_;
  SliceTable targets_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::vector<Piece>>> pieces_;
  std::map<std::int32_t, DeviceTraffic> devices_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> transfers_;
  Conversion result_;
};

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

Result<Conversion> plan_conversion(const Phase& from, const Phase& to, const Options& options) {
  return Planner(from, to, options).run();
}

std::optional<program::Program> program_of(const Conversion& conversion, std::string name) {
  if (conversion.transfers.empty()) return std::nullopt;
  std::map<std::int32_t, std::int32_t> rank_of;  // device -> rank
  for (const Transfer& transfer : conversion.transfers) {
    rank_of[transfer.from] = 0;
    rank_of[transfer.to] = 0;
  }
  program::Program program;
  program.name = std::move(name);
  std::vector<std::int32_t> ranks;
  for (auto& [device, rank] : rank_of) {
    rank = static_cast<std::int32_t>(program.device_of_rank.size());
    program.device_of_rank.push_back(device);
    ranks.push_back(rank);
  }
  program.mesh = {{"rank", static_cast<std::int64_t>(ranks.size())}};
  program.streams = {{"compute"}};
  program.totals.peak_dtype = name_of(DType::kBf16);
  program::Communication exchange{.kind = program::CollectiveKind::kExchange,
                                  .group = program::RankGroups{.groups = {ranks}},
                                  .dtype = DType::kBf16};
  for (const Transfer& transfer : conversion.transfers) {
    const Bytes bytes = static_cast<double>(transfer.bytes) * 1_B;
    exchange.transfers.push_back({rank_of[transfer.from], rank_of[transfer.to], bytes});
    exchange.bytes += bytes;
  }
  program.blocks.push_back({.name = "exchange",
                            .tasks = {{.name = "exchange",
                                       .body = std::move(exchange),
                                       .stream = program::StreamId{0},
                                       .after = {}}}});
  program::Role role{.name = "devices", .ranks = std::move(ranks)};
  role.calls.push_back({.block = program::BlockId{0}, .repeat = 1});
  program.roles.push_back(std::move(role));
  return program;
}

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

std::string to_text(const Explanation& e, const Paper& paper) {
  const Conversion& c = e.conversion;
  Page page(paper);
  page.line(fmt::format("{} on {}\n  from {}\n  to   {}", e.model, e.cluster, e.from, e.to));
  if (!e.down.empty()) page.line(fmt::format("  down {}", describe_ranks(e.down)));
  page.line(fmt::format("\n  {} {}: {} move, {} stay where they are", c.tensors,
                        plural(c.tensors, "tensor"), format(bytes(c.bytes_moved)),
                        format(bytes(c.bytes_staying))));
  if (c.tensors_dropped > 0)
    page.line(fmt::format("  {} {} of {} no longer needed", c.tensors_dropped,
                          plural(c.tensors_dropped, "tensor"), format(bytes(c.bytes_dropped))));
  if (c.transfers.empty()) {
    page.line("  nothing is sent");
  } else {
    page.line(fmt::format("  {} {} between {} {} of devices, as one exchange", c.messages,
                          plural(c.messages, "slice"), c.transfers.size(),
                          plural(std::ssize(c.transfers), "pair")));
    page.line(e.simulated ? fmt::format("  simulated {} (closed form {})", format(*e.simulated),
                                        format(*e.closed_form))
                          : fmt::format("  closed form {}; not simulated: more than {} pairs",
                                        format(*e.closed_form), kMostSimulated));
    const auto* sends = most(c, [](const DeviceTraffic& d) { return d.sent; });
    const auto* receives = most(c, [](const DeviceTraffic& d) { return d.received; });
    page.line(fmt::format("  most is sent by device {}: {}; received by device {}: {}",
                          sends->device, format(bytes(sends->sent)), receives->device,
                          format(bytes(receives->received))));
  }
  page.line(fmt::format(
      "  peak memory of old and new slices: {} of {} on device {}{}", format(e.peak_memory),
      format(e.memory_capacity), e.fullest_device,
      e.peak_memory > e.memory_capacity ? "; it does not fit: convert through a checkpoint" : ""));
  if (c.transfers.empty()) return std::move(page).take();
  constexpr std::int64_t kMostLinks = 8;
  TextTable table({"<busiest links", ">bytes", ">busy"});
  for (const auto& link : e.links)
    table.row(link.from + " -> " + link.to, format(link.bytes), format(link.time));
  page.table(std::move(table), kMostLinks, "(--format json lists them)");
  return std::move(page).take();
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
