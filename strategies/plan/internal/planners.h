/// \file
/// The planners, one function each; make_plan.cc has their order.
#pragma once

#include "strategies/plan/planner.h"

namespace foreshard::plan {

/// Pieces to chunks, as the schedule places them (schedule::piece_of). Counts the parameters
/// of each role. Needs nothing.
Status plan_places(Draft& draft);

/// The passes of each role, in the order of the schedule, one pass for each slot; two or more where
/// a backward pass runs in two parts and only some of its units split. Activations are kept from
/// the forward to the backward pass. Without training there are no backward passes. Needs places.
Status plan_passes(Draft& draft);

/// Reductions of gradients over the ranks that hold copies of the parameters: behind each unit's
/// backward pass, of the last or of every micro-batch, or in one go at the end of the step.
///
/// Where ranks keep only a part of the gradients, two whole gradients are there at most: a pass
/// waits until the reduction before the last is done. (PyTorch:
/// torch/distributed/fsdp/_fully_shard, FSDPCommContext::reduce_scatter_state;
/// _post_backward_final_callback ends a backward pass when all is reduced.) Needs passes.
Status plan_reductions(Draft& draft);

/// What ends a training step: gradients of copies are added up, then the optimizer steps. Needs
/// reductions.
Status plan_step_end(Draft& draft);

/// Gathers of parameters that ranks hold shards of: at the start of the step, each unit's first
/// pass waiting for its own; behind the optimizer; or before each pass, given up after it. Then no
/// more than two units are whole at a time: a gather waits for the pass before the one that runs
/// while it proceeds, and the framework says where the host issues it (Prefetch). Units are asked
/// for in the order of the passes, embedding and head among them, up to the end of a pass through
/// all. The model's last unit stays whole where its backward pass follows its forward pass at once.
/// (PyTorch: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _backward_prefetch, which
/// goes through post_forward_order backwards; pytorch/torchtitan, apply_fsdp, which does not
/// reshard the last unit after its forward pass by default; DeepSpeed: stage3_max_reuse_distance.)
/// Needs reductions (a gather may be issued before one) and the step end.
/// Not modelled: units that stay whole from micro-batch to micro-batch of a pipeline, as
/// torchtitan's do by default; that FSDP2 does not copy out again what stays whole.
Status plan_gathers(Draft& draft);

/// What moves between the device and the memory of its host.
///
/// Activations of the first N of a chunk's L layers are copied behind their forward pass, and
/// fetched before their backward pass. Those of L - N layers (at least one) have room: the forward
/// pass that comes so many layers later waits for the copy, and a layer is fetched as soon as the
/// backward pass so many layers behind it is done. (Transformer Engine: cpu_offload.py,
/// OffloadSynchronizer: finish_offload_map and start_reload_map.)
///
/// Gradients go to the host behind their reduction, where the CPU takes the optimizer's step, which
/// waits for them. (Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", USENIX
/// ATC 2021.) Needs reductions, the step end and gathers.
Status plan_offloads(Draft& draft);

/// Transfers between the pieces of a pipeline, and where the host waits for them. Blocking sends
/// delay the next pass. A blocking receive follows the slot before; in a ring of stages (an
/// interleaved pipeline) the slot before that: Megatron-LM posts the receives of the next forward
/// and the next backward pass together, and a host that waited for its sends too would never come
/// to issue it. Those of schedules that may not block lie ready (schedule::Schedule). Needs
/// everything else.
Status plan_transfers(Draft& draft);

}  // namespace foreshard::plan
