/// \file
/// A user's own schedule, as text: of each stage the actions that it runs, in order.
///
///     F0 F1 I0 W0 I1 W1           one chunk per stage
///     0F0 0F1 3F0 3B0 0I0 3F1 ... several: the piece of the model first
///
/// F runs forward, B backward, I the gradients of inputs and W those of weights; where a W follows
/// for the same micro-batch, B stands for I. This is how torch.distributed.pipelining writes a
/// schedule as CSV, one row for each rank, whose rows are read as they are: commas are spaces, and
/// the two passes of "(0F1;3B0)OVERLAP_F_B" run side by side where Shape::pairs is set, else one
/// after the other.
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
  Placement placement = Placement::kWrap;
  std::optional<TableFault> fault{};  ///< Where there is one, the rest means nothing.
};

/// The table that `stages` write, one text for each stage, and its first fault.
Actions read_actions(std::span<const std::string> stages, const Shape& shape);

/// As `stages` write them: the pieces of stage 0 tell. kWrap where they cannot be read.
Placement placement_of(std::span<const std::string> stages);

/// Whether some passes run side by side.
bool pairs(std::span<const std::string> stages);

/// Whether some backward pass runs in two parts.
bool splits(std::span<const std::string> stages);

}  // namespace foreshard::schedule
