/// \file
/// Offloading in the Program: operations of a rank with the memory of its host, on streams of their
/// own (the device's two copy engines, one in each direction, and the CPU).
///
/// The optimizer's step on the CPU reads gradients, and reads and writes master copies and moments,
/// all in fp32; then it casts parameters to the device's precision, and they go back in one copy.
/// The step takes the time of its memory traffic, which competes with other ranks of the socket.
/// It moves
///
///     4 (gradient) + 3 x 8 (master and moments, read and written) + 4 + 2 (cast to 16 bits) = 34 B
///
/// for each element. In fp32 training nothing is cast.
/// Source: microsoft/DeepSpeed, csrc/adam/cpu_adam_impl.cpp (vectorised, so bound by memory);
/// deepspeed/runtime/zero/stage3.py (partition_grads: gradients come in fp32;
/// _reassign_or_swap_out_partitioned_parameters: a copy between devices and types, which PyTorch
/// casts at its source).
/// Not modelled: the CPU's arithmetic and threads; DeepSpeed's scaling of gradients on the CPU (8 B
/// more); steps in groups of parameters, where one group is copied while another is computed;
/// gradients of several micro-batches that are added up (each reduction is copied).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/lower/block.h"

namespace foreshard::lower {

/// One operation with the host, on the stream of its kind.
program::Task host_task(std::string name, program::CollectiveKind kind, Bytes bytes, DType dtype,
                        std::vector<std::int32_t> after = {});

/// Copies a unit's activations, `bytes` in `buffer`, to the host and then frees the buffer.
program::Block activations_to_host(const std::string& unit, const std::string& buffer, Bytes bytes,
                                   DType dtype);
/// Copies them back. The buffer is allocated as the copy begins.
program::Block activations_from_host(const std::string& unit, const std::string& buffer,
                                     Bytes bytes, DType dtype);

/// Copies gradients of `count` elements to the host, in fp32.
program::Block gradients_to_host(std::string name, std::int64_t count);

/// Appends the optimizer's step on the CPU for `count` elements.
/// \param left_on_device  how many of these still have their gradients on the device; 0: none.
void append_cpu_step(program::Block& step, const Strategy& strategy, std::int64_t count,
                     std::int64_t left_on_device);

/// Appends the optimizer's step on the device: a copy of its states from the host, the update (by
/// `append_update`), and a copy of the states back.
void append_fetched_step(program::Block& step, const Strategy& strategy, std::int64_t count,
                         const std::function<void()>& append_update);

/// Puts a copy of `bytes` from the host before the gather of a unit's parameters; the gather waits
/// for the copy.
void put_parameters_before(program::Block& gather, Bytes bytes, DType dtype);

}  // namespace foreshard::lower
