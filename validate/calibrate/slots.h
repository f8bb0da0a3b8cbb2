/// \file
/// The numbers of a communication library that a fit may change, as one vector of logarithms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/comm/parameters.h"

namespace foreshard::calibrate {

/// A number of a form (FormParameters).
enum class Field : std::uint8_t {
  kBase,
  kNetworkBase,
  kHopNvlink,
  kHopPcie,
  kHopNetwork,
  kHopEmpty,
  kPartNvlink,
  kPartPcie,
  kHostRate,
  kPartNetwork,
  kChannelBytes,
  kTurnaround,
  kChannelRate,
  kNetworkChannelRate,
};
inline constexpr std::size_t kFields = 14;
const char* name_of(Field field);

double value_of(const comm::FormParameters& form, Field field);
void set_value(comm::FormParameters& form, Field field, double value);

/// One free number. Forms that run the same primitives share it: rings, trees and chains of one
/// protocol share the start-up times, `turnaround` (what a member copies) and the rate of a
/// channel; they differ in the share of the links' bandwidth that they reach.
struct Slot {
  std::string name;  ///< For example "ring LL base".
  /// Whether it is a start-up time of the GPU alone (launch, polling of flags), without fence or
  /// network. Such times of one generation move together (collective_fit.h).
  bool polls = false;
  /// Whether it is the rate of one multiprocessor's loads and stores, which is proportional to the
  /// clock (collective_fit.h).
  bool per_cycle = false;
  double start = 0;  ///< Value before any data.
  double low = 0;    ///< Bounds.
  double high = 0;
  double spread = 1;  ///< Standard deviation of the logarithm, before any data.
};

/// Maps the fields of the forms of `start` to slots, and back. Numbers that are 0 or infinite in
/// `start` are fixed, and so are all numbers of forms that are used on request only.
class Slots {
 public:
  explicit Slots(const comm::Parameters& start);

  const std::vector<Slot>& all() const { return all_; }
  /// Slot of a form's field, or -1 if it is fixed.
  int index(std::size_t form, Field field) const;
  /// Form `form` with the numbers exp(logarithms[slot]), without architectures and operations.
  comm::FormParameters form_at(std::size_t form, const double* logarithms) const;
  const comm::Parameters& start() const { return start_; }

 private:
  comm::Parameters start_;
  std::vector<comm::FormParameters> lean_;  ///< Forms of `start`, without texts and lists.
  std::vector<Slot> all_;
  std::vector<std::vector<int>> index_;  ///< Form -> field -> slot; -1: fixed.
};

}  // namespace foreshard::calibrate
