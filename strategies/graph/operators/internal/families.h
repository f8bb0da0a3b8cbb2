/// \file
/// The definitions of the table, each in the file of its family.
#pragma once

#include "strategies/graph/operators/definition.h"

namespace foreshard::operators {

// attention.cc
OperatorDefinition attention();
OperatorDefinition attention_gradient();
// batch_norm.cc
OperatorDefinition batch_norm();
OperatorDefinition batch_norm_gradient();
OperatorDefinition batch_norm_gradient_sums();
OperatorDefinition batch_statistics();
// contraction.cc
OperatorDefinition einsum();
OperatorDefinition matmul();
// control.cc
OperatorDefinition condition();
OperatorDefinition loop();
// convolution.cc
OperatorDefinition conv();
OperatorDefinition conv_data_gradient();
OperatorDefinition conv_weight_gradient();
OperatorDefinition pool();
OperatorDefinition pool_gradient();
// elementwise.cc
OperatorDefinition binary();
OperatorDefinition cast();
OperatorDefinition dropout();
OperatorDefinition dropout_gradient();
OperatorDefinition unary();
OperatorDefinition unary_gradient();
OperatorDefinition where();
// experts.cc
OperatorDefinition moe_combine();
OperatorDefinition moe_dispatch();
OperatorDefinition moe_weight_gradient();
// fused.cc
OperatorDefinition swiglu();
OperatorDefinition swiglu_gradient();
// lookup.cc
OperatorDefinition cross_entropy();
OperatorDefinition cross_entropy_gradient();
OperatorDefinition embedding();
OperatorDefinition gather();
OperatorDefinition scatter_add();
OperatorDefinition top_k();
OperatorDefinition top_k_gradient();
// normalization.cc
OperatorDefinition layer_norm();
OperatorDefinition layer_norm_gradient();
OperatorDefinition rms_norm();
OperatorDefinition rms_norm_gradient();
OperatorDefinition softmax();
OperatorDefinition softmax_gradient();
// optimizer.cc
OperatorDefinition optimizer_update();
// packed.cc
OperatorDefinition rope();
OperatorDefinition rope_gradient();
// reduction.cc
OperatorDefinition expand();
OperatorDefinition reduce();
// shapes.cc
OperatorDefinition concat();
OperatorDefinition pad();
OperatorDefinition reshape();
OperatorDefinition slice();
OperatorDefinition split();
OperatorDefinition transpose();

}  // namespace foreshard::operators
