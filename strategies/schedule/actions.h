/// \file
/// A user's own schedule as text: the actions of each stage, in order.
///
///     F0 F1 I0 W0 I1 W1           one chunk per stage
///     0F0 0F1 3F0 3B0 0I0 3F1 ... several: the piece of the model first
///
/// F is a forward pass, B a backward pass, I computes input gradients and W weight gradients; where
/// a W follows for the same micro-batch, B means I. torch.distributed.pipelining writes schedules
/// in this format as CSV, one row per rank. Its rows are read unchanged: commas count as spaces,
/// and the two passes of "(0F1;3B0)OVERLAP_F_B" run side by side if PipelineShape::pairs is set,
/// else one after the other.
///
/// Source: pytorch/pytorch, torch/distributed/pipelining/schedules.py: _Action,
/// _PipelineScheduleRuntime._load_csv.
/// Not modelled: actions of that format other than passes (SEND_F, UNSHARD), as transfers and
/// gathers follow from the passes here.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "strategies/schedule/schedule.h"
#include "strategies/schedule/walk.h"

namespace foreshard::schedule {

struct Actions {
  Table table{};
  StagePlacement placement = StagePlacement::kWrap;
  std::optional<TableFault> fault{};  ///< If set, the other members are meaningless.
};

/// Reads the table from `stages`, one text per stage, and finds its first fault.
Actions read_actions(std::span<const std::string> stages, const PipelineShape& shape);

/// The placement that the pieces of stage 0 imply. kWrap if they cannot be read.
StagePlacement placement_of(std::span<const std::string> stages);

/// Whether some passes run side by side.
bool pairs(std::span<const std::string> stages);

/// Whether some backward pass runs in two parts.
bool splits(std::span<const std::string> stages);

}  // namespace foreshard::schedule
