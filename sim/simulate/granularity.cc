#include "sim/simulate/granularity.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <string>
#include <tuple>

#include "base/quantity.h"

#include "sim/simulate/internal/messages.h"

namespace foreshard::sim {
namespace {

constexpr double kSame = 1e-9;  // relative difference by rounding
constexpr std::size_t kMostListed = 4;

// A form whose time by messages differs from the time of the flat form.
struct Difference {
  std::string what;
  Seconds flat;
  Seconds by_messages;

  double relative() const { return by_messages / flat - 1; }
};

Result<std::vector<Difference>> differences(const ClusterView& cluster,
                                            const program::Program& program,
                                            const Communicators& communicators,
                                            const CommunicatorForms& forms) {
  std::vector<Difference> found;
  std::set<std::int32_t> kinds;
  std::set<std::tuple<std::string, double, double>> listed;
  for (std::size_t c = 0; c < communicators.all.size(); ++c) {
    if (!kinds.insert(forms.kind_of(c)).second) continue;
    for (const auto& [in_base, form] : forms.of(c)) {
      if (!form.overlaps_rounds) continue;
      const Bytes bytes = Bytes::from_base(in_base);
      FORESHARD_ASSIGN(const auto time, internal::time_by_messages(internal::operation_of(
                                            cluster, program, communicators, forms, c, bytes)));
      const Difference difference{fmt::format("{} {} of {} among {}", form.algorithm,
                                              comm::name_of(communicators.all[c].kind),
                                              format(bytes), communicators.all[c].ranks.size()),
                                  forms.idle(c, bytes).time, time};
      if (std::abs(difference.relative()) > kSame &&
          listed.insert({difference.what, difference.flat.in_base(), time.in_base()}).second)
        found.push_back(difference);
    }
  }
  std::ranges::stable_sort(found, std::greater{},
                           [](const Difference& one) { return one.by_messages - one.flat; });
  return found;
}

double most_held(const Communicators& communicators, const CommunicatorForms& forms) {
  double most = 0;
  for (std::size_t c = 0; c < communicators.all.size(); ++c)
    for (const auto& [bytes, form] : forms.of(c)) most = std::max(most, form.sm_share);
  return most;
}

}  // namespace

Result<std::vector<Warning>> granularity_warnings(const ClusterView& cluster,
                                                  const program::Program& program,
                                                  const Communicators& communicators,
                                                  const CommunicatorForms& forms,
                                                  const SimulateOptions& options) {
  std::vector<Warning> warnings;
  if (options.granularity == Granularity::kFlat) return warnings;
  const auto warn = [&](std::string message) {
    warnings.push_back({.code = "granularity", .message = std::move(message)});
  };
  if (options.engine == EngineKind::kSimgrid)
    warn("SimGrid simulates each message of a collective (--granularity stepwise)");
  if (const double held = most_held(communicators, forms); held > 0)
    warn(
        fmt::format("messages hold no multiprocessors: kernels beside a collective run at full "
                    "speed, where --granularity flat takes up to {:.3g} % of a device from them",
                    100 * held));
  FORESHARD_ASSIGN(const auto different, differences(cluster, program, communicators, forms));
  if (different.empty()) return warnings;
  std::string list;
  for (std::size_t i = 0; i < std::min(kMostListed, different.size()); ++i) {
    const Difference& one = different[i];
    list += fmt::format("{}{} takes {}, flat {} ({:+.2g} %)", i == 0 ? "" : "; ", one.what,
                        format(one.by_messages), format(one.flat), 100 * one.relative());
  }
  if (different.size() > kMostListed)
    list += fmt::format("; and {} more", different.size() - kMostListed);
  warn(
      "on idle links some collectives take longer message by message, because their rounds wait "
      "for one another, which --granularity flat leaves out: " +
      list);
  return warnings;
}

}  // namespace foreshard::sim
