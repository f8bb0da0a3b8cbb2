/// \file
/// The arithmetic of each optimizer's step on the parameters of a role, rank by rank: private to
/// role_parameters.cc. What a rank takes of others it gets by `convert`, as lowering emits it.
#pragma once

#include "tests/oracle/internal/role_parameters.h"

namespace foreshard::execute {

struct UpdateOf {
  const StepOptions& options;
  const ProcessMesh& mesh;
  double clip = 1;  ///< A factor of all gradients.
};

/// One step of the optimizer of that name. Every one of optimizer_rules() has it.
void update_by(std::string_view rule, Parameter& parameter, const UpdateOf& of);

}  // namespace foreshard::execute
