/// \file
/// The flat forms of all communicators of a Program: for each operation size the algorithm and
/// protocol that is best, and what it puts on which links.
///
/// Communicators that are built alike (topology/congruence.h) share one form, up to the names of
/// links: its routes are asked for once. The others are routed for themselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "sim/simulate/communicators.h"
#include "strategies/comm/collective.h"
#include "topology/congruence.h"

namespace foreshard::sim {

/// What one link carries for one communicator, over all its forms.
struct LinkUse {
  LinkId link;               ///< Of the communicator that was routed.
  Congruence::Place place;   ///< The same by the index of the part in the communicator's list.
  std::uint64_t amount = 0;  ///< Hash of (operation size, weight) of all forms.
  /// The most that the link carries by what the links into its tail carry, over all forms; those
  /// of the opposite direction of its cable left out. Infinite where there is nothing.
  double of_feeders = 0;
  double of_drains = 0;  ///< Likewise by the links out of its head.
};

/// What a form takes on idle links. Asked for by every class of ranks: the sums over its links,
/// thousands in a large group, are made once.
struct IdleTimes {
  Seconds delay;  ///< FlatCollective::delay.
  Seconds time;   ///< FlatCollective::idle_time.
};

/// Communicators with the same forms, up to the names of links.
struct SharedForms {
  std::map<double, comm::FlatCollective> by_bytes;  ///< With the links of the first communicator.
  std::map<double, IdleTimes> idle_by_bytes;        ///< Of the same sizes.
  std::vector<LinkUse> uses;                        ///< Ascending links.
};

class CommunicatorForms {
 public:
  const std::map<double, comm::FlatCollective>& of(std::size_t communicator) const {
    return kind(communicator).by_bytes;
  }
  const comm::FlatCollective& at(std::size_t communicator, Bytes bytes) const {
    return kind(communicator).by_bytes.at(bytes.in_base());
  }
  const IdleTimes& idle(std::size_t communicator, Bytes bytes) const {
    return kind(communicator).idle_by_bytes.at(bytes.in_base());
  }
  /// What the communicator's links carry; `link_of` tells which they are.
  const std::vector<LinkUse>& uses(std::size_t communicator) const {
    return kind(communicator).uses;
  }
  LinkId link_of(std::size_t communicator, const LinkUse& use) const {
    const auto& parts = parts_[communicator];
    if (parts.empty()) return use.link;
    return congruence_->link_at({parts[static_cast<std::size_t>(use.place.part)], use.place.index});
  }
  /// Visits (link, bytes that cross it per byte of the operation).
  template <class Visit>
  void each_load(std::size_t communicator, const comm::FlatCollective& form, Visit&& visit) const {
    const auto& uses = kind(communicator).uses;
    auto use = uses.begin();
    for (const comm::LinkLoad& load : form.loads) {
      while (use->link < load.link) ++use;
      visit(link_of(communicator, *use), load.bytes_per_byte);
    }
  }

  /// Index of what it shares; equal for communicators built alike.
  std::int32_t kind_of(std::size_t communicator) const { return kind_of_[communicator]; }
  std::size_t kinds() const { return kinds_.size(); }
  /// Why nothing is shared; empty if the cluster allows it.
  const std::string& unshared_because() const { return unshared_because_; }

 private:
  friend class FormChooser;
  const SharedForms& kind(std::size_t communicator) const {
    return kinds_[static_cast<std::size_t>(kind_of_[communicator])];
  }

  std::vector<SharedForms> kinds_;
  std::vector<std::int32_t> kind_of_;             // per communicator
  std::vector<std::vector<std::int32_t>> parts_;  // likewise; empty if its links are the form's
  std::shared_ptr<const Congruence> congruence_;
  std::string unshared_because_;
};

/// The other direction of a cable, where it was added right before or after this one.
std::optional<LinkId> opposite_of(const ClusterView& cluster, LinkId link);

/// The devices of a communicator, with its root and transfers.
comm::Participants participants_of(const ClusterView& cluster, const program::Program& program,
                                   const Communicators& communicators, std::size_t communicator);

/// \param share  whether communicators that are built alike are routed once.
/// \return what comm::flat_forms returns.
Result<CommunicatorForms> choose_forms(const ClusterView& cluster, const program::Program& program,
                                       const Communicators& communicators,
                                       const comm::Parameters& parameters, bool share = true);

}  // namespace foreshard::sim
