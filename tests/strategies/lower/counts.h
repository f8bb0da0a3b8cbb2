/// \file
/// Strategies by their degrees, and what their programs compute, send and hold.
#pragma once

#include <ostream>

#include "tests/test.h"

#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower {

/// With a vocabulary that is not padded.
inline Strategy degrees(std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
                        std::int64_t micro_batch = 1, std::int64_t micro_batches = 1) {
  Strategy s;
  s.tensor_parallel = tensor;
  s.pipeline_parallel = pipeline;
  s.data_parallel = data;
  s.micro_batch = micro_batch;
  s.global_batch = micro_batch * data * micro_batches;
  s.framework.value.vocabulary_multiple = 1;
  return s;
}

struct Traffic {
  std::int64_t operations = 0;
  double bytes = 0;
  bool operator==(const Traffic&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Traffic& traffic) {
  return out << traffic.operations << " operations, " << traffic.bytes << " B";
}

/// Calls visit(task), or visit(block, task), as often as a rank of the role runs the task.
template <class Visit>
void visit_tasks(const program::Program& program, const program::Role& role, Visit visit) {
  for (const program::Call& call : role.calls) {
    const program::Block& block = program.blocks[call.block.index()];
    for (std::int32_t i = 0; i < call.repeat; ++i) {
      for (const program::Task& task : block.tasks) {
        if constexpr (std::is_invocable_v<Visit, const program::Block&, const program::Task&>)
          visit(block, task);
        else
          visit(task);
      }
    }
  }
}
template <class Visit>
void visit_tasks(const program::Program& program, Visit visit) {
  visit_tasks(program, program.roles[0], visit);
}

inline double gemm_flops(const program::Program& program, const program::Role& role) {
  double sum = 0;
  visit_tasks(program, role, [&](const program::Task& task) {
    const auto* kernel = std::get_if<Kernel>(&task.body);
    if (kernel != nullptr && std::holds_alternative<Gemm>(*kernel))
      sum += flops_of(*kernel).in_base();
  });
  return sum;
}

/// Bytes of that kind that a rank of the first role holds throughout.
inline double held(const program::Program& program, program::MemoryKind kind) {
  double bytes = 0;
  for (const program::StaticMemory& memory : program.roles[0].memory)
    if (memory.kind == kind) bytes += memory.bytes.in_base();
  return bytes;
}

/// Names of the matrix products of a pass that is one block.
inline std::set<std::string> products_of(const Pieces& pass) {
  std::set<std::string> names;
  for (const program::Task& task : only_block(pass).tasks) {
    const auto* kernel = std::get_if<Kernel>(&task.body);
    if (kernel != nullptr && std::holds_alternative<Gemm>(*kernel)) names.insert(task.name);
  }
  return names;
}

}  // namespace foreshard::lower
