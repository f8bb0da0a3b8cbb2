/// \file
/// One operation on one group over many sizes: the chosen form, its time, the limiting link, and
/// the estimate of NCCL's own tuner.
///
///     const auto rows = sweep(CollectiveKind::kAllReduce, group, parameters,
///                             sizes_between(1_KiB, 16_GiB, 2));
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/collective.h"
#include "strategies/comm/nccl/estimate.h"

namespace foreshard::comm {

/// One form at one size.
struct SweepForm {
  std::string_view algorithm;  ///< Static storage, as in FlatCollective.
  std::string_view protocol;
  double channels = 0;
  Seconds time;
  LinkId bottleneck;  ///< Invalid if the channels limit the form, or nothing does.
};

struct SweepRow {
  Bytes bytes;
  SweepForm taken;
  BytesPerSecond algorithm_rate;  ///< bytes / time. 0 for one member.
  BytesPerSecond bus_rate;        ///< algorithm_rate x bus_factor.
  /// The fastest of the other forms that may be used for this size (StartUp::most_bytes).
  std::optional<SweepForm> runner_up;
  /// The form that NCCL's tuner would use, and its estimate; empty where NCCL has no model, or
  /// `parameters` have no tables.
  std::optional<nccl::Estimate> nccl;
  std::vector<SweepForm> all;  ///< Every form, in the order of flat_forms.
};

/// The factor by which nccl-tests multiply an operation's rate so that it compares with a link's: 2
/// (n-1) / n for all-reduce, (n-1) / n for all-gather, reduce-scatter and all-to-all, else 1.
/// Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
double bus_factor(CollectiveKind kind, std::int64_t members);

/// first, first x step, ... up to last.
/// \pre 0 < first <= last, step > 1
std::vector<Bytes> sizes_between(Bytes first, Bytes last, double step);

/// \param also_on_request  lists among `all` also the forms that are used only on request.
/// \return As AlgorithmSelector (choose.h): also kInvalidInput if a choice cannot be followed.
Result<std::vector<SweepRow>> sweep(CollectiveKind kind, const Participants& group,
                                    const Parameters& parameters, const std::vector<Bytes>& sizes,
                                    bool also_on_request = false);

}  // namespace foreshard::comm
