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
/// protocol have the start-up times, what a member copies (`turnaround`) and the rate of a channel
/// in common and differ in the part of the links that they reach.
struct Slot {
  std::string name;  ///< For example "ring LL base".
  /// A start-up time that is the GPU's alone (launch, polling of flags), without fence or network:
  /// those of one generation move together (collective_fit.h).
  bool polls = false;
  /// What the loads and stores of one multiprocessor move in a second: it goes with its clock
  /// (collective_fit.h).
  bool per_cycle = false;
  double start = 0;  ///< Before any data.
  double low = 0;    ///< Bounds.
  double high = 0;
  double spread = 1;  ///< Standard deviation of the logarithm, before any data.
};

/// What the forms of `start` have in common with the free numbers. Numbers that are 0 or infinite
/// in `start` stay so, and so do forms that are taken on request alone.
class Slots {
 public:
  explicit Slots(const comm::Parameters& start);

  const std::vector<Slot>& all() const { return all_; }
  /// Slot of a form's field, or -1 if it is fixed.
  int index(std::size_t form, Field field) const;
  /// Form `form` with the numbers exp(logarithms[slot]), for any architecture and operation.
  comm::FormParameters form_at(std::size_t form, const double* logarithms) const;
  const comm::Parameters& start() const { return start_; }

 private:
  comm::Parameters start_;
  std::vector<comm::FormParameters> lean_;  ///< Of `start`, without texts and lists.
  std::vector<Slot> all_;
  std::vector<std::vector<int>> index_;  ///< By form and field.
};

}  // namespace foreshard::calibrate
