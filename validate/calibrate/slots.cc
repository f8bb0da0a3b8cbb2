#include "validate/calibrate/slots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/check.h"

namespace foreshard::calibrate {
namespace {

struct Bounds {
  const char* name;
  double low;
  double high;
  double spread;
};
// Units: seconds, shares of a link's bandwidth, bytes, messages, bytes per second.
constexpr std::array<Bounds, kFields> kBounds{{
    {"base", 1e-6, 300e-6, 0.7},
    {"base over the network", 1e-7, 100e-6, 0.7},
    {"hop over NVLink", 1e-8, 20e-6, 1.0},
    {"hop over PCIe", 1e-8, 40e-6, 1.0},
    {"hop over the network", 1e-7, 100e-6, 0.7},
    {"hop over the network without bytes", 1e-7, 100e-6, 0.7},
    {"part of NVLink", 0.02, 1, 0.4},
    {"part of PCIe", 0.02, 1, 0.4},
    {"rate of PCIe through the host", 1e8, 200e9, 0.4},
    {"part of the network", 0.02, 1, 0.4},
    {"bytes that open a channel", 256, 1 << 20, 1.0},
    {"turnaround", 1e-3, 3, 1.0},
    {"rate of a channel", 1e8, 200e9, 0.5},
    {"rate of a channel over the network", 2e7, 200e9, 0.7},
}};

// Fraction of the bytes on the wire that is data: LL sends a flag with every 4 bytes, LL128 8 bytes
// of flags in every 128 (strategies/comm/parameters.h). It bounds the protocol's share of a link.
double data_on_the_wire(comm::Protocol protocol) {
  switch (protocol) {
    case comm::Protocol::kLl:
      return 0.5;
    case comm::Protocol::kLl128:
      return 120.0 / 128;
    case comm::Protocol::kNone:
    case comm::Protocol::kSimple:
      return 1;
  }
  return 1;
}

bool is_part_of_link(Field field) {
  return field == Field::kPartNvlink || field == Field::kPartPcie || field == Field::kPartNetwork;
}

bool is_start_up(Field field) {
  return field == Field::kBase || field == Field::kNetworkBase || field == Field::kHopNvlink ||
         field == Field::kHopPcie || field == Field::kHopNetwork || field == Field::kHopEmpty;
}

// Whether the field is a start-up time of LL inside a node. LL has neither fence nor proxy there,
// so the time is that of the launch and of polling flags.
bool polls(const comm::FormParameters& form, Field field) {
  return form.protocol == comm::Protocol::kLl && is_start_up(field) &&
         field != Field::kNetworkBase && field != Field::kHopNetwork && field != Field::kHopEmpty;
}

// Whether the field is the channel rate of an all-to-all with the Simple protocol. Its channels
// also copy what a member keeps, with the loads and stores of their threads.
bool copies(const comm::FormParameters& form, Field field) {
  return form.algorithm == "pairwise" && form.protocol == comm::Protocol::kSimple &&
         field == Field::kChannelRate;
}

bool runs_ring_primitives(const std::string& algorithm) {
  return algorithm == "ring" || algorithm == "tree" || algorithm == "chain";
}

// Fields with the same name share a slot.
std::string slot_name(const comm::FormParameters& form, Field field) {
  const std::string family = runs_ring_primitives(form.algorithm) ? "ring" : form.algorithm;
  const std::string protocol(comm::name_of(form.protocol));
  // Inside a node, NVLS tree does what NVLS does (NCCL 2.28, src/graph/tuning.cc: one efficiency
  // for both).
  if (form.algorithm == "nvls_tree" && (field == Field::kBase || field == Field::kPartNvlink))
    return std::string("nvls Simple ") + name_of(field);
  if (is_start_up(field) || field == Field::kTurnaround || field == Field::kChannelRate)
    return family + " " + protocol + " " + name_of(field);
  return form.algorithm + " " + protocol + " " + name_of(field);
}

}  // namespace

const char* name_of(Field field) {
  return kBounds[static_cast<std::size_t>(field)].name;
}

double value_of(const comm::FormParameters& form, Field field) {
  switch (field) {
    case Field::kBase:
      return form.base.in_base();
    case Field::kNetworkBase:
      return form.network_base.in_base();
    case Field::kHopNvlink:
      return form.hop.nvlink.in_base();
    case Field::kHopPcie:
      return form.hop.pcie.value_or(0_s).in_base();
    case Field::kHopNetwork:
      return form.hop.network.in_base();
    case Field::kHopEmpty:
      return form.hop.network_empty.value_or(0_s).in_base();
    case Field::kPartNvlink:
      return form.efficiency.nvlink;
    case Field::kPartPcie:
      return form.efficiency.pcie;
    case Field::kHostRate:
      return form.host_rate.in_base();
    case Field::kPartNetwork:
      return form.efficiency.network;
    case Field::kChannelBytes:
      return form.channel_bytes.in_base();
    case Field::kTurnaround:
      return form.turnaround;
    case Field::kChannelRate:
      return form.channel_rate.in_base();
    case Field::kNetworkChannelRate:
      return form.network_channel_rate.in_base();
  }
  FORESHARD_CHECK(false && "every field has a value");
  return 0;
}

void set_value(comm::FormParameters& form, Field field, double value) {
  switch (field) {
    case Field::kBase:
      form.base = Seconds::from_base(value);
      return;
    case Field::kNetworkBase:
      form.network_base = Seconds::from_base(value);
      return;
    case Field::kHopNvlink:
      form.hop.nvlink = Seconds::from_base(value);
      return;
    case Field::kHopPcie:
      form.hop.pcie = Seconds::from_base(value);
      return;
    case Field::kHopNetwork:
      form.hop.network = Seconds::from_base(value);
      return;
    case Field::kHopEmpty:
      form.hop.network_empty = Seconds::from_base(value);
      return;
    case Field::kPartNvlink:
      form.efficiency.nvlink = value;
      return;
    case Field::kPartPcie:
      form.efficiency.pcie = value;
      return;
    case Field::kHostRate:
      form.host_rate = BytesPerSecond::from_base(value);
      return;
    case Field::kPartNetwork:
      form.efficiency.network = value;
      return;
    case Field::kChannelBytes:
      form.channel_bytes = Bytes::from_base(value);
      return;
    case Field::kTurnaround:
      form.turnaround = value;
      return;
    case Field::kChannelRate:
      form.channel_rate = BytesPerSecond::from_base(value);
      return;
    case Field::kNetworkChannelRate:
      form.network_channel_rate = BytesPerSecond::from_base(value);
      return;
  }
}

Slots::Slots(const comm::Parameters& start) : start_(start) {
  std::map<std::string, int> known;
  for (const comm::FormParameters& form : start.forms) {
    comm::FormParameters lean = form;
    lean.source.clear();
    lean.architectures.clear();
    lean.operations.clear();
    lean_.push_back(std::move(lean));
    auto& of_form = index_.emplace_back(kFields, -1);
    if (form.on_request) continue;
    for (std::size_t f = 0; f < kFields; ++f) {
      const auto field = static_cast<Field>(f);
      const double value = value_of(form, field);
      if (!(value > 0) || !std::isfinite(value)) continue;
      const auto [place, is_new] =
          known.try_emplace(slot_name(form, field), static_cast<int>(all_.size()));
      of_form[f] = place->second;
      if (!is_new) continue;
      Bounds bounds = kBounds[f];
      if (is_part_of_link(field)) bounds.high *= data_on_the_wire(form.protocol);
      all_.push_back({.name = place->first,
                      .polls = polls(form, field),
                      .per_cycle = copies(form, field),
                      .start = std::clamp(value, bounds.low, bounds.high),
                      .low = bounds.low,
                      .high = bounds.high,
                      .spread = bounds.spread});
    }
  }
}

int Slots::index(std::size_t form, Field field) const {
  return index_[form][static_cast<std::size_t>(field)];
}

comm::FormParameters Slots::form_at(std::size_t form, const double* logarithms) const {
  comm::FormParameters result = lean_[form];
  for (std::size_t f = 0; f < kFields; ++f)
    if (const int slot = index_[form][f]; slot >= 0)
      set_value(result, static_cast<Field>(f), std::exp(logarithms[slot]));
  return result;
}

}  // namespace foreshard::calibrate
