// Sums of products: matmul and einsum. Each is one Gemm (an einsum of one input one pass). Both are
// einsums here: a matmul has the equation of its shapes. They are entries of the table of operators
// (internal/families.h), through which graphs are inferred, lowered and differentiated.
#include <algorithm>
#include <map>

#include "base/check.h"

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

// Letters of each operand of "ab,bc->ac": those of the inputs, then those of the output. An error
// if there is no "->", or a letter stands twice in one operand.
Result<std::vector<std::string>> letters_of(const std::string& equation) {
  const std::size_t arrow = equation.find("->");
  if (arrow == std::string::npos) return wrong("equation '" + equation + "' needs '->'");
  std::vector<std::string> operands(1);
  for (std::size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (i == arrow) {
      operands.emplace_back();
      ++i;
    } else if (c == ',' && i < arrow) {
      operands.emplace_back();
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (operands.back().find(c) != std::string::npos)
        return wrong("equation '" + equation + "': '" + c + "' twice in one operand");
      operands.back() += c;
    } else {
      return wrong("equation '" + equation + "': '" + c + "' is neither a letter nor a comma");
    }
  }
  return operands;
}

// The settings of an einsum. A grouped letter (heads) may have fewer entries in one operand than in
// another. Example: of 32 query heads and 8 key heads, each key head belongs to a group of 4 query
// heads, and the scores have 32 heads. The gradient of the keys has 8 again (`groups`): it is
// summed over each group.
struct EinsumSettings {
  std::string equation;
  std::string grouped{};    // a letter; empty: none
  std::int64_t groups = 0;  // entries of `grouped` in the result; 0: as many as the largest input
  std::string to{};         // type of the result; empty: type of the inputs
  bool apart = false;       // each product of a batch is launched by itself
};

// Letter -> its extent in the inputs; for a grouped letter the largest extent.
Result<std::map<char, std::int64_t>> extents_of(const std::vector<std::string>& letters,
                                                const std::vector<TensorType>& inputs,
                                                const std::string& grouped) {
  std::map<char, std::int64_t> extent;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (letters[i].size() != inputs[i].shape.size())
      return wrong("'" + letters[i] + "' does not fit input " + std::to_string(i) + " of shape " +
                   text_of(inputs[i].shape));
    for (std::size_t d = 0; d < letters[i].size(); ++d) {
      const std::int64_t here = inputs[i].shape[d];
      const auto [known, added] = extent.emplace(letters[i][d], here);
      const auto [few, many] = std::minmax({known->second, here});
      if (grouped == std::string(1, letters[i][d]) && few > 0 && many % few == 0)
        known->second = many;
      else if (!added && known->second != here)
        return wrong(std::string("'") + letters[i][d] + "' is " + std::to_string(known->second) +
                     " in one input and " + std::to_string(inputs[i].shape[d]) + " in another");
    }
  }
  return extent;
}

// The result's type and shape, and the rule, in which every letter is a factor.
Result<Inferred> infer_equation(const EinsumSettings& what, const std::vector<TensorType>& inputs) {
  const std::string& equation = what.equation;
  if (what.grouped.size() > 1) return wrong("'" + what.grouped + "' is not one letter");
  FORESHARD_ASSIGN(const auto letters, letters_of(equation));
  if (letters.size() != inputs.size() + 1)
    return wrong("equation '" + equation + "' has " + std::to_string(letters.size() - 1) +
                 " inputs, not " + std::to_string(inputs.size()));
  if (inputs.size() == 1 && !what.to.empty())
    return wrong("an einsum of one input has the input's type; leave out 'to'");
  DType to = inputs[0].dtype;
  if (!what.to.empty()) {
    FORESHARD_ASSIGN(to, dtype_named(what.to));
    if (!is_float(to) || size_of(to) < 2_B)
      return wrong("'to' is the type of a sum: fp32, tf32, fp16 or bf16, not '" + what.to + "'");
  }
  for (const TensorType& input : inputs) {
    if (what.to.empty() && input.dtype != to) return wrong("the inputs differ in type; set 'to'");
    if (!what.to.empty() && !is_float(input.dtype))
      return wrong("with 'to', the inputs are floating-point numbers");
  }
  FORESHARD_ASSIGN(const auto extent, extents_of(letters, inputs, what.grouped));
  TensorType out{to, {}};
  for (const char letter : letters.back()) {
    const auto known = extent.find(letter);
    if (known == extent.end())
      return wrong("equation '" + equation + "': '" + std::string(1, letter) + "' is in no input");
    const bool groups = what.groups > 0 && what.grouped == std::string(1, letter);
    if (groups && (known->second == 0 || known->second % what.groups != 0))
      return wrong(std::to_string(known->second) + " of '" + what.grouped + "' do not form " +
                   std::to_string(what.groups) + " groups");
    out.shape.push_back(groups ? what.groups : known->second);
  }
  std::vector<Shape> shapes;
  shapes.reserve(inputs.size() + 1);
  for (const TensorType& input : inputs) shapes.push_back(input.shape);
  shapes.push_back(out.shape);
  // Partial sums may pass a sum of one input (kJoint), and one factor of a product (kSeparate).
  // With a bias (third input) every input must be complete, as each rank would add the bias
  // (kNone).
  const Linearity linearity = inputs.size() == 1   ? Linearity::kJoint
                              : inputs.size() == 2 ? Linearity::kSeparate
                                                   : Linearity::kNone;
  FORESHARD_ASSIGN(auto rule, rule_from(equation, shapes, {.linearity = linearity}));
  return Inferred{{std::move(out)}, std::move(rule)};
}

// The setting "scales"; if it is empty, the scales of a forward product in the recipe.
Scales scales_in(const Settings& settings) {
  const std::string scales = settings.has("scales") ? settings.text("scales") : std::string{};
  if (!scales.empty()) return *find_scales(scales);
  return settings.has("recipe") ? scales_of(*recipe_in(settings), false) : Scales::kTensor;
}

// The Gemm of an einsum. A letter in both inputs and the output is a batch; in the first input and
// the output a row; in the second input and the output a column; only in the inputs, contracted. A
// grouped letter has its largest extent: every query head needs its product. If the operands differ
// in type, the product computes in the narrower one and reads a copy of the other operand in it.
Gemm gemm_of(const std::string& equation, const Call& local) {
  const auto letters = *letters_of(equation);
  // letter -> its largest extent, and where it is: bits 0 and 1 the inputs, bit 2 the output
  std::map<char, std::pair<std::int64_t, int>> found;
  for (std::size_t i = 0; i < 3; ++i) {
    const Shape& shape = i < 2 ? local.inputs[i].shape : local.outputs[0].shape;
    const std::string& here = i < 2 ? letters[i] : letters.back();
    for (std::size_t d = 0; d < here.size(); ++d) {
      auto& [extent, operands] = found[here[d]];
      extent = std::max(extent, shape[d]);
      operands |= 1 << i;
    }
  }
  Gemm gemm{.batch = 1,
            .m = 1,
            .n = 1,
            .k = 1,
            .dtype = size_of(local.inputs[1].dtype) < size_of(local.inputs[0].dtype)
                         ? local.inputs[1].dtype
                         : local.inputs[0].dtype,
            .accumulate = local.accumulates,
            .apart = local.settings.has("apart") && local.settings.flag("apart")};
  if (size_of(gemm.dtype) < 2_B) gemm.scales = scales_in(local.settings);
  for (const auto& [letter, where] : found) {
    std::int64_t& dimension = where.second == 0b111   ? gemm.batch
                              : where.second == 0b101 ? gemm.m
                              : where.second == 0b110 ? gemm.n
                                                      : gemm.k;
    dimension *= where.first;
  }
  return gemm;
}

// The kernel of one rank; `local` has the shapes of its slices.
std::vector<Kernel> kernels_of_equation(const std::string& equation, const Call& local) {
  if (local.inputs.size() >= 2) return {gemm_of(equation, local)};
  // An einsum of one tensor is a sum or a transposition.
  const bool sums = product(local.inputs[0].shape) != product(local.outputs[0].shape);
  return one_pass(sums ? PassKind::kReduce : PassKind::kTranspose, local.inputs[0]);
}

// Adds the gradients of an einsum: one einsum for each input. With `recipe`, the gradient of the
// result is quantized first, and both products read it in that form.
void backward_of_equation(Gradients& gradients, const EinsumSettings& what,
                          Quantization recipe = Quantization::kNone) {
  const auto letters = *letters_of(what.equation);
  const TensorId dy = gradients.of_output(0);
  if (gradients.op().inputs.size() == 1) {
    // The sum's gradient goes back to every summand.
    const Shape whole = gradients.shape(gradients.input(0));
    Integers unit;
    std::string kept;
    for (std::size_t d = 0; d < letters[0].size(); ++d) {
      const bool out = letters[1].find(letters[0][d]) != std::string::npos;
      unit.push_back(out ? whole[d] : 1);
      if (out) kept += letters[0][d];
    }
    TensorId gradient = dy;
    if (kept != letters[1])
      gradient =
          gradients.add("einsum", "order", {dy}, {{"equation", letters[1] + "->" + kept}})[0];
    if (gradients.shape(gradient) != unit)
      gradient = gradients.add("reshape", "shape", {gradient}, {{"shape", unit}})[0];
    if (unit != whole) gradient = gradients.add("expand", "", {gradient}, {{"shape", whole}})[0];
    return gradients.give(0, gradient);
  }
  TensorId factor = dy;
  if (recipe != Quantization::kNone)
    // "both": also the copy along the other dimension, which the weight's gradient reads.
    factor = gradients.add("quantize", "quantized", {dy},
                           {{"recipe", std::string(yaml::name_of(recipe))},
                            {"both", gradients.wants(1)},
                            {"apart", what.apart}})[0];
  // Each letter that is summed is in both inputs, so that each gradient is one product
  // (infer_einsum refuses other equations).
  for (std::size_t i = 0; i < 2; ++i) {
    if (!gradients.wants(i)) continue;
    const std::size_t other = 1 - i;
    const auto inputs = i == 0 ? std::vector<TensorId>{factor, gradients.input(1)}
                               : std::vector<TensorId>{gradients.input(0), factor};
    const std::string& out = letters.back();
    Settings back{{"equation", i == 0 ? out + "," + letters[other] + "->" + letters[0]
                                      : letters[other] + "," + out + "->" + letters[1]}};
    if (!what.to.empty()) {
      // A gradient has the type of its input; if that is narrow, the type of the result's gradient.
      const DType input = gradients.tensor(gradients.input(i)).dtype;
      const DType to = size_of(input) < 2_B ? gradients.tensor(dy).dtype : input;
      back.set("to", std::string(name_of(to)));
    }
    const bool of_weight = gradients.tensor(gradients.input(i)).role == TensorRole::kParameter;
    if (const Scales scales = scales_of(recipe, of_weight); scales != Scales::kTensor)
      back.set("scales", std::string(name_of(scales)));
    const auto at = what.grouped.empty() ? std::string::npos : letters[i].find(what.grouped);
    if (at != std::string::npos) {
      back.set("grouped", what.grouped);
      back.set("groups", gradients.shape(gradients.input(i))[at]);
    }
    if (what.apart) back.set("apart", true);
    gradients.give(i, gradients.add("einsum", i == 0 ? "data" : "weight", inputs, back)[0]);
  }
  if (gradients.op().inputs.size() == 2) return;
  // A matmul's equation comes without its bias, which is one of the columns.
  const bool is_matmul = letters.size() == 3;
  const bool of_columns = is_matmul || letters[2].size() == 1;
  gradients.give(
      2, (of_columns ? gradients.add("bias_gradient", "bias", {dy})
                     : gradients.add("einsum", "bias", {dy},
                                     {{"equation", letters.back() + "->" + letters[2]}}))[0]);
}

EinsumSettings einsum_settings_in(const Settings& settings) {
  return {settings.text("equation"), settings.text("grouped"), settings.integer("groups"),
          settings.text("to"), settings.flag("apart")};
}

Status check_recipe(const Settings& settings) {
  const std::string scales = settings.has("scales") ? settings.text("scales") : std::string{};
  if (!scales.empty() && !find_scales(scales))
    return wrong("scales '" + scales + "' are not known; use tensor, blocks or vectors");
  FORESHARD_ASSIGN(const auto recipe, recipe_in(settings));
  const std::string& to = settings.text("to");
  if (recipe != Quantization::kNone && to != "bf16" && to != "fp16" && to != "fp32")
    return wrong("recipe '" + std::string(yaml::name_of(recipe)) +
                 "' quantizes the gradient of the result, which is to be bf16, fp16 or fp32: set "
                 "'to'");
  return {};
}

// Refuses einsums of two inputs that sum a letter which only one input has: not one product.
Result<Inferred> infer_einsum(const Call& call) {
  const std::string& equation = call.settings.text("equation");
  FORESHARD_TRY(check_recipe(call.settings));
  auto inferred = infer_equation(einsum_settings_in(call.settings), call.inputs);
  if (!inferred || call.inputs.size() == 1) return inferred;
  const auto letters = *letters_of(equation);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const char letter : letters[i]) {
      if (letters[1 - i].find(letter) == std::string::npos &&
          letters.back().find(letter) == std::string::npos)
        return wrong("equation '" + equation + "': '" + std::string(1, letter) +
                     "' is summed in one input alone; reduce that input first");
    }
  }
  if (letters.size() > 3 && letters[2].find_first_not_of(letters.back()) != std::string::npos)
    return wrong("equation '" + equation +
                 "': the third input is added to the sums, and has their "
                 "letters alone");
  return inferred;
}

std::vector<Kernel> einsum_kernels(const Call& local, const Call&) {
  return kernels_of_equation(local.settings.text("equation"), local);
}

void einsum_backward(Gradients& gradients) {
  const Settings& settings = gradients.op().settings;
  backward_of_equation(gradients, einsum_settings_in(settings), *recipe_in(settings));
}

// The equation of a matmul of these shapes. Leading dimensions of the second operand are a batch;
// if it is a plain matrix, all leading dimensions of the first operand are rows.
Result<std::string> matmul_equation(const Shape& a, const Shape& b, bool transpose_a,
                                    bool transpose_b) {
  if (a.empty() || b.empty()) return wrong("needs tensors of at least one dimension");
  if (a.size() > 20 || b.size() > 20) return wrong("takes at most 20 dimensions");
  const std::size_t leading_a = a.size() >= 2 ? a.size() - 2 : 0;
  const std::size_t leading_b = b.size() >= 2 ? b.size() - 2 : 0;
  if (leading_b > 0 && leading_a != leading_b)
    return wrong("batched operands " + text_of(a) + " and " + text_of(b) +
                 " need the same leading dimensions; expand or reshape one");
  std::string batch;
  for (std::size_t d = 0; d < leading_a; ++d) batch += static_cast<char>('a' + d);
  for (std::size_t d = 0; d < leading_b; ++d) {
    if (a[d] != b[d])
      return wrong("batched operands " + text_of(a) + " and " + text_of(b) +
                   " differ in dimension " + std::to_string(d));
  }
  const std::string row = a.size() >= 2 ? "x" : "";
  const std::string column = b.size() >= 2 ? "z" : "";
  const std::string left = batch + (transpose_a ? "y" + row : row + "y");
  const std::string right =
      (leading_b > 0 ? batch : "") + (transpose_b ? column + "y" : "y" + column);
  std::string out = batch;
  out += row;
  out += column;
  const std::int64_t contracted_a = transpose_a && a.size() >= 2 ? a[a.size() - 2] : a.back();
  const std::int64_t contracted_b = transpose_b || b.size() < 2 ? b.back() : b[b.size() - 2];
  if (contracted_a != contracted_b)
    return wrong("shapes " + text_of(a) + " and " + text_of(b) + " do not multiply: " +
                 std::to_string(contracted_a) + " meets " + std::to_string(contracted_b));
  return left + "," + right + "->" + out;
}

Result<std::string> matmul_equation(const Call& call) {
  return matmul_equation(call.inputs[0].shape, call.inputs[1].shape,
                         call.settings.flag("transpose_a"), call.settings.flag("transpose_b"));
}

Result<Inferred> infer_matmul(const Call& call) {
  FORESHARD_ASSIGN(const auto equation, matmul_equation(call));
  const std::string& to = call.settings.text("to");
  FORESHARD_TRY(check_recipe(call.settings));
  if (call.inputs.size() == 2) return infer_equation({.equation = equation, .to = to}, call.inputs);
  if (equation.back() != 'z') return wrong("a bias needs columns");
  std::string biased = equation;
  biased.insert(biased.find("->"), ",z");
  return infer_equation({.equation = biased, .to = to}, call.inputs);
}

std::vector<Kernel> matmul_kernels(const Call& local, const Call& whole) {
  return kernels_of_equation(*matmul_equation(whole), local);
}

void matmul_backward(Gradients& gradients) {
  const Settings& settings = gradients.op().settings;
  const auto equation =
      matmul_equation(gradients.shape(gradients.input(0)), gradients.shape(gradients.input(1)),
                      settings.flag("transpose_a"), settings.flag("transpose_b"));
  backward_of_equation(gradients, {.equation = *equation, .to = settings.text("to")},
                       *recipe_in(settings));
}

SettingDefinition recipe_setting() {
  return {.name = "recipe",
          .fallback = std::string{"none"},
          .doc =
              "Recipe by which the gradient of the result is quantized for the products of the "
              "backward pass; its values are those of `quantization` in a strategy."};
}

SettingDefinition to_setting() {
  return {.name = "to",
          .fallback = std::string{},
          .doc =
              "Type of the result, such as \"bf16\"; the inputs may then differ in type. The "
              "product computes in the narrower type: it reads a copy of the wider input, and "
              "making that copy is no part of this operator. Empty: the type of the inputs."};
}

}  // namespace

OperatorDefinition einsum() {
  return {
      .name = "einsum",
      .doc =
          "Sum of products of one or two inputs, whose dimensions are letters: "
          "\"bsi,io->bso\". A third input is a bias that the product adds at no cost: "
          "\"ebi,eio,eo->ebo\".",
      .inputs = "a[, b[, bias]]",
      .outputs = "y",
      .least_inputs = 1,
      .most_inputs = 3,
      .settings = {{.name = "equation",
                    .fallback = std::string{},
                    .required = true,
                    .doc = "Letters of the inputs, \"->\", letters of the output."},
                   {.name = "grouped",
                    .fallback = std::string{},
                    .doc = "A letter, such as that of heads, which may have fewer entries in "
                           "one operand than in another. With 32 query heads and 8 key heads, "
                           "each key head serves 4 query heads."},
                   {.name = "groups",
                    .fallback = std::int64_t{0},
                    .doc = "Number of entries of the `grouped` letter in the result, which "
                           "is summed over each group: 8 for the gradient of 8 key heads. 0: as "
                           "many as the input with the most has."},
                   to_setting(),
                   recipe_setting(),
                   {.name = "scales",
                    .fallback = std::string{},
                    .doc = "Elements that share a scale in operands of fp8: all (\"tensor\"), "
                           "128 x 128 of the second operand (\"blocks\"), or 128 along the "
                           "summed dimension (\"vectors\"). Empty: as `recipe` says. Operands "
                           "of 16 bits have no scales."},
                   {.name = "apart",
                    .fallback = false,
                    .doc = "Whether each product of a batch is launched by itself, as those "
                           "of experts can be."}},
      .infer = infer_einsum,
      .kernels = einsum_kernels,
      .gradient = einsum_backward};
}

OperatorDefinition matmul() {
  return {
      .name = "matmul",
      .doc =
          "Matrix product over the last two dimensions; leading dimensions are a batch, or "
          "rows if the second operand is one matrix. A third input is a bias of the columns that "
          "the product adds at no cost.",
      .inputs = "a, b[, bias]",
      .outputs = "y",
      .least_inputs = 2,
      .most_inputs = 3,
      .settings = {{.name = "transpose_a",
                    .fallback = false,
                    .doc = "Whether the last two dimensions of `a` are swapped."},
                   {.name = "transpose_b",
                    .fallback = false,
                    .doc = "Whether the last two dimensions of `b` are swapped."},
                   to_setting(),
                   recipe_setting()},
      .infer = infer_matmul,
      .kernels = matmul_kernels,
      .gradient = matmul_backward};
}

}  // namespace foreshard::operators
