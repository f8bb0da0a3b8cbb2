#include "strategies/parallelism/optimizer.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/framework.h"
#include "strategies/parallelism/internal/optimizers.h"

namespace foreshard {
namespace {

const OptimizerRule* find_rule(std::string_view name) {
  const auto& rules = optimizer_rules();
  const auto it = std::ranges::find(rules, name, &OptimizerRule::name);
  return it == rules.end() ? nullptr : &*it;
}

// "adam, lamb, muon": the rules for which `holds` is set; null: all rules.
std::string names_of(bool OptimizerRule::*holds) {
  std::string names;
  for (const OptimizerRule& rule : optimizer_rules())
    if (holds == nullptr || rule.*holds)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", rule.name);
  return names;
}

// The fault in a type other than fp32: the rule must allow a choice (`chosen`), and the type must
// be `legal`.
std::string fault_in_type(const Optimizer& of, DType given, bool OptimizerRule::*chosen,
                          std::initializer_list<DType> legal) {
  const OptimizerRule* rule = find_rule(of.rule);
  if (rule == nullptr || given == DType::kFp32) return {};
  if (!(rule->*chosen))
    return fmt::format("'{}' has it in a type of its own; leave it out, or set rule: {}", of.rule,
                       names_of(chosen));
  if (std::ranges::find(legal, given) != legal.end()) return {};
  std::string names;
  for (const DType dtype : legal)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(dtype));
  return fmt::format("{} is no type for it; use one of {}", name_of(given), names);
}

std::string fault_in_moment(const Optimizer& of, DType moment) {
  return fault_in_type(of, moment, &OptimizerRule::chooses_moments,
                       {DType::kFp32, DType::kFp16, DType::kBf16, DType::kFp8});
}

}  // namespace

const std::vector<OptimizerRule>& optimizer_rules() {
  static const std::vector<OptimizerRule> rules{
      optimizers::adam(), optimizers::adam_8bit(), optimizers::lamb(),
      optimizers::muon(), optimizers::sgd(),
  };
  return rules;
}

const OptimizerRule& rule_of(const Optimizer& optimizer) {
  const OptimizerRule* rule = find_rule(optimizer.rule);
  FORESHARD_CHECK(rule != nullptr);
  return *rule;
}

const yaml::Table<Optimizer>& yaml_table(const Optimizer*) {
  static const auto table =
      yaml::Table<Optimizer>("optimizer", "What updates the parameters, and what it keeps of each.")
          .optional("rule", &Optimizer::rule,
                    fmt::format("Which optimizer: one of {}.", names_of(nullptr)))
          .optional("first_moment", &Optimizer::first_moment,
                    "Type of Adam's mean of gradients (fp32, fp16, bf16, fp8).")
          .optional("second_moment", &Optimizer::second_moment,
                    "Type of Adam's mean of their squares (fp32, fp16, bf16, fp8).")
          .optional("master", &Optimizer::master,
                    "Type of the copy of the parameters that Adam updates; that of the parameters: "
                    "they are updated themselves (fp32, fp16, bf16).")
          .optional("remainders", &Optimizer::remainders,
                    "Of a master copy in fp32 Adam keeps only the 16 bits that parameters in bf16 "
                    "lack.")
          .optional("block", &Optimizer::block,
                    "Elements of a moment that share a scale (adam-8bit).",
                    yaml::between(1, 1 << 20))
          .check("block",
                 [](const Optimizer& of) -> std::string {
                   const OptimizerRule* rule = find_rule(of.rule);
                   if (of.block == Optimizer{}.block || rule == nullptr || rule->has_blocks)
                     return {};
                   return fmt::format("'{}' has no blocks; leave it out, or set rule: {}", of.rule,
                                      names_of(&OptimizerRule::has_blocks));
                 })
          .check("rule",
                 [](const Optimizer& of) -> std::string {
                   if (find_rule(of.rule) != nullptr) return {};
                   return fmt::format("no optimizer is called '{}'; use one of {}", of.rule,
                                      names_of(nullptr));
                 })
          .check("first_moment",
                 [](const Optimizer& of) { return fault_in_moment(of, of.first_moment); })
          .check("second_moment",
                 [](const Optimizer& of) { return fault_in_moment(of, of.second_moment); })
          .check("remainders",
                 [](const Optimizer& of) -> std::string {
                   const OptimizerRule* rule = find_rule(of.rule);
                   if (!of.remainders || rule == nullptr) return {};
                   if (!rule->chooses_moments)
                     return fmt::format("'{}' keeps its copy whole; leave it out", of.rule);
                   if (of.master == DType::kFp32) return {};
                   return fmt::format("a master copy in {} is kept whole; leave it out, or master",
                                      name_of(of.master));
                 })
          .check("master", [](const Optimizer& of) {
            return fault_in_type(of, of.master, &OptimizerRule::chooses_master,
                                 {DType::kFp32, DType::kFp16, DType::kBf16});
          });
  return table;
}

bool is_matrix_of_layer(const Tensor& parameter) {
  // The input projection of Mamba layers joins several matrices of unequal width. Source:
  // NVIDIA/Megatron-LM, megatron/core/ssm/mamba_mixer.py (use_muon).
  constexpr std::array kOthers = std::to_array<std::string_view>(
      {"embedding.weight", "position.weight", "encoder_position.weight", "token_type.weight",
       "patch.weight", "conv_1.weight", "conv_2.weight", "logits.weight", "classifier.weight",
       "mamba_in.weight"});
  return parameter.shape.size() > 1 && parameter.name.ends_with(".weight") &&
         std::ranges::find(kOthers, parameter.name) == kOthers.end();
}

std::int64_t elements_of(const MatrixGroup& matrices, const std::vector<MeshAxis>& mesh) {
  return matrices.count * (matrices.rows * matrices.columns / ways(matrices.split, mesh));
}

void add_matrices(std::vector<MatrixGroup>& to, const MatrixGroup& more) {
  const auto it = std::ranges::find_if(to, [&](const MatrixGroup& one) {
    return one.rows == more.rows && one.columns == more.columns && one.split == more.split;
  });
  if (it == to.end()) {
    to.push_back(more);
  } else {
    it->count += more.count;
  }
}

std::int64_t Update::share(std::int64_t count, const UpdatedParameters& of) const {
  const std::int64_t shards = ways(of.cut, mesh);
  return (count + shards - 1) / shards;
}

std::int64_t Update::elements() const {
  std::int64_t sum = 0;
  for (const UpdatedParameters& of : updated) sum += share(of.elements, of);
  return sum;
}

std::int64_t Update::matrix_elements() const {
  std::int64_t sum = 0;
  for (const UpdatedParameters& of : updated)
    for (const MatrixGroup& one : of.matrices) sum += share(elements_of(one, mesh), of);
  return sum;
}

std::string words_of(const Optimizer& of) {
  std::string text = of.rule;
  const Optimizer usual;
  if (of.first_moment != usual.first_moment || of.second_moment != usual.second_moment)
    text += of.first_moment == of.second_moment
                ? fmt::format(" with moments in {}", name_of(of.first_moment))
                : fmt::format(" with moments in {} and {}", name_of(of.first_moment),
                              name_of(of.second_moment));
  if (of.master != usual.master)
    text += fmt::format(" with a master copy in {}", name_of(of.master));
  if (of.remainders) text += " with remainders of the master copy";
  if (of.block != usual.block) text += fmt::format(" with blocks of {}", of.block);
  return text;
}

bool has_master(const Optimizer& optimizer, DType precision) {
  const bool full = precision == DType::kFp32 || precision == DType::kTf32;
  return full ? false : optimizer.master != precision;
}

Bytes master_bytes(const Optimizer& optimizer) {
  return optimizer.remainders ? 2_B : size_of(optimizer.master);
}

Bytes optimizer_bytes(const Optimizer& optimizer, DType precision, bool is_matrix) {
  Bytes bytes;
  if (has_master(optimizer, precision)) bytes += master_bytes(optimizer);
  for (const Moment& moment : rule_of(optimizer).moments(optimizer, is_matrix))
    bytes += moment.bytes;
  return bytes;
}

}  // namespace foreshard
