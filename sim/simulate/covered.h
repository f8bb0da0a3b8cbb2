/// \file
/// Links that can never limit a flow, because other links on the way of everything that crosses
/// them are full first: the uplinks of a leaf that is not oversubscribed, or the ports of a switch
/// that is faster than what hangs on it. Folding and the engine can leave them out.
///
/// **Why it is exact.** Let activity a put w(a,l) on link l, and let F be some links with
///
///     w(a,l)  <=  c * sum over f in F of w(a,f)        for every activity a of the step
///     c * sum over f in F of capacity(f)  <=  capacity(l).
///
/// Then any rates r that keep within the capacities of F keep within that of l:
///
///     sum over a of w(a,l) r(a)  <=  c sum over f, a of w(a,f) r(a)
///                                <=  c sum over f of capacity(f)
///
/// so without l the same rates are allowed, and max-min rates, which depend on the set of allowed
/// rates alone, are the same. Links are left out one after another, each covered by links that are
/// still there: by induction those that stay imply all that are gone.
///
/// F is tried as the links into l's tail (what comes down a cable does not go up it again: that
/// one is not a member) and as those out of its head; c is the largest quotient of all forms.
#pragma once

#include <vector>

#include "sim/simulate/forms.h"

namespace foreshard::sim {

/// What may happen to a link.
enum class LinkRole : std::uint8_t {
  kUnused,   ///< No communicator uses it.
  kCovered,  ///< Others are always full before it.
  kNeeded,
};

/// \param special  per link, whether its capacity or its traffic may be other than the forms say:
///     it is needed, and covers nothing. Empty: none is.
/// \param left_out  per communicator, whether it does not count. Empty: all do. Cost: O(uses of all
///     communicators + links).
std::vector<LinkRole> link_roles(const ClusterView& cluster, const Communicators& communicators,
                                 const CommunicatorForms& forms, const std::vector<bool>& special,
                                 const std::vector<bool>& left_out = {});

}  // namespace foreshard::sim
