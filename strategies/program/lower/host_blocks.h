/// \file
/// What offloading is in the Program: operations of a rank with the memory of its host, on streams
/// of their own (the copy engines of a device, one in each direction, and the CPU).
///
/// The optimizer's step on the CPU reads gradients, and reads and writes master copies and moments,
/// all in fp32; then it casts parameters to the precision of the device, which go back in one
/// copy. It takes the time of its memory traffic, beside that of other ranks of the socket:
///
///     4 (gradient) + 3 x 8 (master and moments, read and written) + 4 + 2 (cast to 16 bits) = 34 B
///
/// an element; in fp32 training nothing is cast. Source: microsoft/DeepSpeed, csrc/adam/
/// cpu_adam_impl.cpp (vectorised, so bound by memory); deepspeed/runtime/zero/stage3.py
/// (partition_grads: gradients come in fp32; _reassign_or_swap_out_partitioned_parameters: a copy
/// between devices and types, which PyTorch casts where it comes from).
/// Not modelled: the CPU's arithmetic and threads; DeepSpeed's scaling of gradients on the CPU (8 B
/// more); steps in groups of parameters, of which one is on its way while another is computed;
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

/// The activations of a unit, `bytes` in `buffer`: to the host, after which their room is free.
program::Block activations_to_host(const std::string& unit, const std::string& buffer, Bytes bytes,
                                   DType dtype);
/// Their way back. Their room is taken as the copy begins.
program::Block activations_from_host(const std::string& unit, const std::string& buffer,
                                     Bytes bytes, DType dtype);

/// Gradients of `count` elements: to the host, in fp32.
program::Block gradients_to_host(std::string name, std::int64_t count);

/// Appends the step of the CPU for `count` elements.
/// \param left  of these, those whose gradients are still on the device.
void append_cpu_step(program::Block& step, const Strategy& strategy, std::int64_t count,
                     std::int64_t left);

/// Appends the step of the device, which `append_update` does, between copies of its states.
void append_fetched_step(program::Block& step, const Strategy& strategy, std::int64_t count,
                         const std::function<void()>& append_update);

/// Puts a copy of `bytes` from the host before the gather of a unit's parameters, which waits for
/// it.
void put_parameters_before(program::Block& gather, Bytes bytes, DType dtype);

}  // namespace foreshard::lower
