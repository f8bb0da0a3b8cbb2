/// \file
/// The flat forms of all communicators of a Program: the best algorithm and protocol for each
/// operation size, and the loads on links.
///
/// Communicators with the same structure (topology/route_symmetry.h) share one form, up to the
/// names of links: its routes are computed once. All others are routed separately.
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
#include "topology/route_symmetry.h"

namespace foreshard::sim {

/// The load of one link by one communicator, over all its forms.
struct LinkUse {
  LinkId link;  ///< Link of the communicator that was routed.
  RouteSymmetry::LinkPosition
      place;                 ///< The same link, relative to the communicator's list of parts.
  std::uint64_t amount = 0;  ///< Hash of (operation size, weight) of all forms.
  /// Largest ratio, over all forms, of this link's load to the sum of loads on the links into its
  /// tail (without the opposite direction of its cable). Infinite if that sum is nearly
  /// zero.
  double of_feeders = 0;
  double of_drains = 0;  ///< The same ratio with the links out of its head.
};

/// Times of a form on idle links. Every class of ranks asks for them, so the sums over the links,
/// thousands in a large group, are computed once.
struct IdleTimes {
  Seconds delay;  ///< FlatCollective::delay.
  Seconds time;   ///< FlatCollective::idle_time.
};

/// Communicators with the same forms, up to the names of links.
struct SharedPlanForms {
  /// Forms with the links of the first communicator.
  std::map<double, comm::FlatCollective> by_bytes;
  std::map<double, IdleTimes> idle_by_bytes;  ///< Times for the same sizes.
  std::vector<LinkUse> uses;                  ///< Sorted by link.
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
  /// Loads of the communicator's links; `link_of` says which links these are.
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

  /// Index of its SharedPlanForms; equal for communicators with the same structure.
  std::int32_t kind_of(std::size_t communicator) const { return kind_of_[communicator]; }
  std::size_t kinds() const { return kinds_.size(); }
  /// Reason why no forms are shared; empty if the cluster allows sharing.
  const std::string& unshared_because() const { return unshared_because_; }

 private:
  friend class FormChooser;
  const SharedPlanForms& kind(std::size_t communicator) const {
    return kinds_[static_cast<std::size_t>(kind_of_[communicator])];
  }

  std::vector<SharedPlanForms> kinds_;
  std::vector<std::int32_t> kind_of_;  // per communicator
  // per communicator; empty if its links are the form's
  std::vector<std::vector<std::int32_t>> parts_;
  std::shared_ptr<const RouteSymmetry> congruence_;
  std::string unshared_because_;
};

/// The other direction of a cable, if that link was added right before or after this one.
std::optional<LinkId> opposite_of(const ClusterView& cluster, LinkId link);

/// The devices of a communicator, with its root and transfers.
comm::Participants participants_of(const ClusterView& cluster, const program::Program& program,
                                   const Communicators& communicators, std::size_t communicator);

/// \param share  whether communicators with the same structure are routed once.
/// \return The errors of comm::flat_forms.
Result<CommunicatorForms> choose_forms(const ClusterView& cluster, const program::Program& program,
                                       const Communicators& communicators,
                                       const comm::Parameters& parameters, bool share = true);

}  // namespace foreshard::sim
