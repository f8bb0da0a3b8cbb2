#include "strategies/graph/splits.h"

#include "base/check.h"

#include "strategies/graph/internal/factors.h"

namespace foreshard {

using internal::Assignment;

bool is_legal(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh) {
  return Assignment(rule, mesh).take(splits);
}

std::vector<Splits> legal_splits(const Rule& rule, const std::vector<MeshAxis>& mesh) {
  std::vector<Splits> ways{Splits(rule.factors.size())};
  for (std::size_t a = 0; a < mesh.size(); ++a) {
    if (mesh[a].size == 1) continue;
    const std::size_t before = ways.size();
    for (std::size_t w = 0; w < before; ++w) {
      for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        Splits more = ways[w];
        more[f].push_back(static_cast<Axis>(a));
        ways.push_back(std::move(more));
      }
    }
  }
  // Only complete ways are checked: a split of a minor factor may become legal with a later axis of
  // its major factor.
  std::erase_if(ways, [&](const Splits& splits) { return !is_legal(rule, splits, mesh); });
  return ways;
}

Signature signature_of(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh) {
  Assignment assignment(rule, mesh);
  FORESHARD_CHECK(assignment.take(splits));
  Signature signature;
  for (std::size_t o = 0; o < rule.operands.size(); ++o) {
    Attribute attribute = assignment.attribute(o);
    if (o < rule.inputs) {
      signature.inputs.push_back(std::move(attribute));
    } else {
      attribute.partial = assignment.partial(o);
      signature.outputs.push_back(std::move(attribute));
    }
  }
  return signature;
}

}  // namespace foreshard
