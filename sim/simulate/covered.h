/// \file
/// Links that can never limit a flow, because other links on the path of everything that crosses
/// them fill up first: the uplinks of a leaf that is not oversubscribed, or the ports of a switch
/// that is faster than everything attached to it. Folding and the engine can leave them out.
///
/// **Why it is exact.** Let activity a put w(a,l) on link l, and let F be a set of links with
///
///     w(a,l)  <=  c * sum over f in F of w(a,f)        for every activity a of the step
///     c * sum over f in F of capacity(f)  <=  capacity(l).
///
/// Then any rates r within the capacities of F are also within the capacity of l:
///
///     sum over a of w(a,l) r(a)  <=  c sum over f, a of w(a,f) r(a)
///                                <=  c sum over f of capacity(f)
///
/// so without l the same rates are allowed. Max-min rates depend only on the set of allowed rates,
/// so they stay the same. Links are left out one after another, each covered by links that are
/// still there: by induction the remaining links imply all links that were left out.
///
/// Two sets are tried as F: the links into l's tail (without the opposite direction of l's cable,
/// since what comes down a cable does not go up it again), and the links out of its head. c is the
/// largest quotient of all forms.
#pragma once

#include <vector>

#include "sim/simulate/forms.h"

namespace foreshard::sim {

/// What may become of a link.
enum class LinkRole : std::uint8_t {
  kUnused,   ///< No communicator uses it.
  kCovered,  ///< Other links always fill up first.
  kNeeded,
};

/// \param special  link -> whether its capacity or its traffic may differ from what the forms say:
///     then it is needed, and covers nothing. Empty: none.
/// \param left_out  communicator -> whether it does not count. Empty: all count.
///
/// Cost: O(uses of all communicators + links).
std::vector<LinkRole> link_roles(const ClusterView& cluster, const Communicators& communicators,
                                 const CommunicatorForms& forms, const std::vector<bool>& special,
                                 const std::vector<bool>& left_out = {});

}  // namespace foreshard::sim
