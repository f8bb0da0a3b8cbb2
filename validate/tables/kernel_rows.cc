#include "validate/tables/kernel_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <ranges>
#include <utility>

#include "base/text.h"

#include "validate/tables/cells.h"

namespace foreshard::accuracy {
namespace {

constexpr std::string_view kGemm = "gemm";
constexpr std::string_view kAttention = "attention_";
constexpr std::string_view kSoftmaxAlone = "softmax_alone_";

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Evaluates a formula, reading its text from left to right.
class Formula {
 public:
  // The number of a name; nothing if the name may lack a number and does.
  using Names = std::function<std::optional<std::int64_t>(std::string_view name, bool may_lack)>;
  Formula(std::string_view text, const Names& names) : rest_(text), names_(&names) {}

  // Nothing if the text is no formula.
  std::optional<std::int64_t> value() {
    const std::int64_t value = sum();
    return ok_ && next().empty() ? std::optional(value) : std::nullopt;
  }

 private:
  static bool is_of_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }
  // The next word, number or other character; empty at the end.
  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const auto end = std::ranges::find_if_not(rest_, is_of_word);
    return rest_.substr(0, std::max<std::size_t>(1, static_cast<std::size_t>(end - rest_.begin())));
  }
  bool take(std::string_view token) {
    if (next() != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) { ok_ = take(token) && ok_; }

  std::int64_t sum() {
    std::int64_t value = product();
    while (take("+")) value += product();
    return value;
  }
  std::int64_t product() {
    for (std::int64_t value = factor();;) {
      const bool divides = take("/");
      if (!divides && !take("*")) return value;
      const std::int64_t by = factor();
      if (divides) value = by == 0 ? 0 : value / by;
      if (!divides) value *= by;
    }
  }
  std::int64_t factor() {
    const std::string_view token = next();
    rest_.remove_prefix(token.size());
    if (token == "(") {
      const std::int64_t value = sum();
      expect(")");
      return value;
    }
    if (token == "max" || token == "min") {
      expect("(");
      const std::int64_t a = sum();
      expect(",");
      const std::int64_t b = sum();
      expect(")");
      return token == "max" ? std::max(a, b) : std::min(a, b);
    }
    if (const auto number = whole_number(token)) return *number;
    if (token.empty() || std::isalpha(static_cast<unsigned char>(token.front())) == 0) {
      ok_ = false;
      return 0;
    }
    const bool may_lack = take("or");
    const auto value = (*names_)(token, may_lack);
    const std::int64_t other = may_lack ? factor() : 0;
    return value.value_or(other);
  }

  std::string_view rest_;
  const Names* names_;
  bool ok_ = true;
};

constexpr std::size_t kLongestFormula = 200;
constexpr int kDeepestValue = 8;

// The fault of a formula, apart from its names; empty if there is none.
std::string fault_of(const std::string& formula) {
  const Formula::Names one = [](std::string_view, bool) { return std::optional<std::int64_t>(1); };
  if (formula.size() <= kLongestFormula && Formula(formula, one).value()) return {};
  return fmt::format("'{}' is not a formula of whole numbers and names of columns", formula);
}

std::string fault_of(const std::map<std::string, std::string>& formulas) {
  std::string fault;
  for (const auto& [name, formula] : formulas)
    if (fault.empty()) fault = fault_of(formula);
  return fault;
}

bool meets(std::string_view text, const std::vector<std::string>& conditions) {
  bool wanted = false;
  bool found = false;
  for (std::string_view condition : conditions) {
    const bool is_not = condition.starts_with('!');
    if (is_not) condition.remove_prefix(1);
    const bool is =
        condition.starts_with('=') ? text == condition.substr(1) : contains(text, condition);
    if (is_not && is) return false;
    if (is_not) continue;
    wanted = true;
    found = found || is;
  }
  return found || !wanted;
}

// The name of the backward pass of a kernel or an operation.
std::string backward_name(std::string name) {
  constexpr std::string_view kForward = "_fwd";
  if (name.ends_with(kForward)) name.resize(name.size() - kForward.size());
  return name + "_bwd";
}

// The two products that compute the gradients of both operands of `forward`.
std::array<Kernel, 2> backward_of(const Gemm& forward) {
  Gemm of_a = forward;  // gradient of D times B^T
  std::swap(of_a.n, of_a.k);
  Gemm of_b = forward;  // A^T times gradient of D
  of_b.m = forward.k;
  of_b.k = forward.m;
  return {of_a, of_b};
}

std::optional<DType> dtype_named(std::string_view name) {
  if (name.empty() || name == "bfloat16") return DType::kBf16;
  if (name == "float16" || name == "half") return DType::kFp16;
  if (name == "float32") return DType::kFp32;
  // One scale for each block of 128 x 128 weights, and one for each 128 elements of an activation,
  // as in DeepGEMM.
  if (name == "fp8_block" || name == "fp8 block-scaled") return DType::kFp8;
  return find_dtype(name);
}

// (name of an OtherRow, texts of its columns `same`) -> its number
using Others = std::map<std::vector<std::string>, std::int64_t>;

// Reads one line of a table.
class Line {
 public:
  Line(const KernelFormat& format, const CsvTable& table, const CsvTable::Row& line,
       std::string_view name, const Others& others)
      : format_(&format), table_(&table), others_(&others), cells_(table, line, name) {}

  // Adds what the line says to the numbers that other rows look up.
  void add_to(Others& others) {
    for (const auto& [name, other] : format_->others)
      if (const auto number = fits(other.where) ? cells_.integer(other.column) : std::nullopt)
        others.emplace(key_of(name, other), *number);
  }

  bool lacks(const MeasuredTime& time) const {
    return time.optional && cells_.text(time.column).empty();
  }

  KernelRow row(const MeasuredTime& time) {
    part_ = time.part;
    const std::string& gpu = cells_.text("gpu");
    row_ = {.id = part_.empty() ? cells_.id() : fmt::format("{}:{}", cells_.id(), part_),
            .source = cells_.text("source"),
            .gpu = gpu.empty() ? cells_.text("device") : gpu,
            .duty = format_->sustained ? Duty::kSustained : Duty::kBurst};
    const bool has_rate =
        !format_->rate.empty() && (time.column.empty() || cells_.text(time.column).empty());
    if (!has_rate && !time.column.empty()) row_.measured = cells_.required(time.column) * time.unit;
    row_.obstacle = reason_to_skip();
    const auto known =
        std::ranges::find_if(format_->operators, [&](const auto& one) { return fits(one.where); });
    if (known != format_->operators.end()) set_kernels(*known);
    if (row_.kernels.empty() && row_.obstacle.empty()) row_.obstacle = filled(format_->unknown);
    if (has_rate && !row_.kernels.empty()) {
      const double tflops = cells_.required(format_->rate);
      Flops flops;
      for (const Kernel& kernel : row_.kernels) flops += flops_of(kernel);
      if (cells_.fault_text().empty()) row_.measured = known->counts * flops / (tflops * 1_TFLOP_s);
    }
    if (row_.obstacle.empty()) row_.obstacle = dtype_fault_;
    if (row_.obstacle.empty()) row_.obstacle = cells_.fault_text();
    return std::move(row_);
  }

 private:
  bool is_pair(std::string_view name) const {
    return !format_->pairs.empty() && !table_->column(name);
  }
  // The text of a column, or what follows a name in the column of pairs.
  std::string_view text(std::string_view name) const {
    constexpr std::string_view kSeparators = ",; ";
    if (name == "part") return part_;
    if (!is_pair(name)) return cells_.text(name);
    const std::string_view pairs = cells_.text(format_->pairs);
    for (std::size_t at = pairs.find(name); at < pairs.size(); at = pairs.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool begins = at == 0 || contains(kSeparators, pairs.substr(at - 1, 1));
      if (begins && end < pairs.size() && (pairs[end] == '=' || pairs[end] == ' '))
        return pairs.substr(end + 1, pairs.find_first_of(kSeparators, end + 1) - end - 1);
    }
    return {};
  }

  bool fits(const Conditions& conditions) const {
    return std::ranges::all_of(
        conditions, [&](const auto& one) { return meets(text(one.first), one.second.words); });
  }

  std::vector<std::string> key_of(const std::string& name, const OtherRow& other) const {
    std::vector<std::string> key{name};
    for (const std::string& column : other.same) key.push_back(cells_.text(column));
    return key;
  }

  // `text` with the texts of cells in place of "{column}".
  std::string filled(std::string text) const {
    std::size_t begin = 0;
    while ((begin = text.find('{', begin)) != std::string::npos) {
      const std::size_t length = std::min(text.find('}', begin), text.size()) - begin;
      const std::string cell(this->text(text.substr(begin + 1, length - 1)));
      text.replace(begin, length + 1, cell);
      begin += cell.size();
    }
    return text;
  }

  std::string reason_to_skip() {
    for (const SkippedRows& skip : format_->skip) {
      if (!fits(skip.where)) continue;
      if (skip.equal.empty()) return filled(skip.reason);
      constexpr double kSame = 0.01;
      const auto a = cells_.number(skip.equal.front()), b = cells_.number(skip.equal.back());
      if (a && b && std::abs(*b / *a - 1) < kSame) return filled(skip.reason);
    }
    return {};
  }

  std::int64_t number(std::string_view formula) {
    const Formula::Names names = [&](std::string_view name, bool may_lack) {
      return named(std::string(name), may_lack);
    };
    return Formula(formula, names).value().value_or(0);
  }
  std::optional<std::int64_t> named(const std::string& name, bool may_lack) {
    if (const auto value = format_->values.find(name); value != format_->values.end()) {
      if (++depth_ > kDeepestValue) cells_.fault(fmt::format("'{}' refers to itself", name));
      const std::int64_t result = depth_ > kDeepestValue ? 0 : number(value->second);
      --depth_;
      return result;
    }
    if (const auto value = format_->assumed.find(name); value != format_->assumed.end()) {
      assume(name);
      return value->second;
    }
    if (const auto other = format_->others.find(name); other != format_->others.end()) {
      const auto found = others_->find(key_of(name, other->second));
      is_known_ = is_known_ && found != others_->end();
      return found == others_->end() ? 0 : found->second;
    }
    if (!is_pair(name)) return may_lack ? cells_.integer(name) : cells_.required_integer(name);
    const auto value = whole_number(text(name));
    if (value && *value > 0) return value;
    if (may_lack && text(name).empty()) return std::nullopt;
    cells_.fault(fmt::format("column '{}' has no whole number '{}' above 0", format_->pairs, name));
    return 1;
  }
  std::int64_t size(const MeasuredKernel& kernel, const std::string& name,
                    std::int64_t fallback = 1) {
    const auto formula = kernel.sizes.find(name);
    return formula == kernel.sizes.end() ? fallback : number(formula->second);
  }
  void assume(const std::string& name) {
    if (std::ranges::find(row_.assumed, name) == row_.assumed.end()) row_.assumed.push_back(name);
  }

  void set_kernels(const MeasuredOperator& known) {
    const bool backward = part_ == "bwd";
    const bool is_derived = backward && known.backward.empty();
    std::string last;
    for (const MeasuredKernel& kernel : backward && !is_derived ? known.backward : known.kernels)
      if (fits(kernel.where)) last = add_kernel(kernel, is_derived);
    row_.operation = backward ? backward_name(known.name) : known.name;
    if (known.name.empty()) row_.operation = last;
    row_.pass_share = known.pass_share;
    row_.draws_little = backward && known.zero_gradients;
    if (row_.draws_little) row_.duty = Duty::kBurst;
    if (!is_known_) row_.kernels.clear();
  }

  // \return The kernel's name.
  std::string add_kernel(const MeasuredKernel& kernel, bool backward) {
    const std::string name = backward ? backward_name(kernel.kernel) : kernel.kernel;
    const auto direction = name.ends_with("_bwd") ? Direction::kBackward : Direction::kForward;
    if (kernel.kernel == kGemm) {
      const Gemm gemm = product(kernel);
      if (backward) std::ranges::copy(backward_of(gemm), std::back_inserter(row_.kernels));
      if (!backward) row_.kernels.emplace_back(gemm);
      return name;
    }
    if (name.starts_with(kAttention)) {
      row_.kernels.emplace_back(attention(kernel, direction));
      return name;
    }
    const std::int64_t rows = size(kernel, "rows"), columns = size(kernel, "columns");
    const PassTraffic* pass = name.starts_with(kSoftmaxAlone)
                                  ? &traffic_of(softmax_alone(direction, columns))
                                  : find_pass(name);
    if (pass == nullptr) pass = find_pass(kernel.kernel);  // the same in both directions
    row_.kernels.emplace_back(
        Pass{.kind = pass->kind, .rows = rows, .columns = columns, .dtype = dtype_of(kernel)});
    if (kernel.sizes.contains("threads"))
      row_.blocks = {.count = rows, .threads = size(kernel, "threads")};
    return std::string(pass->name);
  }

  Gemm product(const MeasuredKernel& kernel) {
    return {.batch = size(kernel, "batch"),
            .m = size(kernel, "m"),
            .n = size(kernel, "n"),
            .k = size(kernel, "k"),
            .dtype = dtype_of(kernel),
            .accumulate = !kernel.accumulate.empty() && fits(kernel.accumulate),
            .scales = contains(cells_.text("dtype"), "block") ? Scales::kBlocks : Scales::kTensor,
            .apart = kernel.apart};
  }

  Attention attention(const MeasuredKernel& kernel, Direction direction) {
    const std::int64_t length = size(kernel, "length"), heads = size(kernel, "heads");
    const std::string_view mask =
        kernel.causal_column.empty() ? std::string_view("1") : text(kernel.causal_column);
    if (table_->column(kernel.causal_column) && mask != "0" && mask != "1") assume("causal");
    return {.batch = size(kernel, "batch"),
            .query_heads = heads,
            .kv_heads = size(kernel, "kv_heads", heads),
            .query_length = length,
            .key_length = length,
            .head_dim = size(kernel, "head_dim"),
            .value_dim = size(kernel, "value_dim", 0),
            .causal = kernel.causal && !mask.starts_with('0'),
            .window = size(kernel, "window", 0),
            .direction = direction,
            .dtype = dtype_of(kernel),
            .implementation = implementation_of(kernel)};
  }
  AttentionImplementation implementation_of(const MeasuredKernel& kernel) const {
    std::string_view name = kernel.implementation;
    for (const auto& [word, take] : format_->implementations)
      if (name.empty() && contains(cells_.text(format_->implementation), word)) name = take;
    return find_attention(name).value_or(AttentionImplementation::kFused);
  }

  DType dtype_of(const MeasuredKernel& kernel) {
    if (!kernel.dtype.empty()) return *find_dtype(kernel.dtype);
    if (!format_->dtype.empty()) return *find_dtype(format_->dtype);
    const std::string& name = cells_.text("dtype");
    const auto dtype = dtype_named(name);
    if (!dtype) dtype_fault_ = fmt::format("dtype '{}' is not modelled", name);
    return dtype.value_or(DType::kBf16);
  }

  const KernelFormat* format_;
  const CsvTable* table_;
  const Others* others_;
  Cells cells_;
  KernelRow row_{};
  std::string part_{};
  std::string dtype_fault_{};
  int depth_ = 0;         ///< Values that formulas of values refer to.
  bool is_known_ = true;  ///< The other rows that formulas refer to exist.
};

constexpr std::array<std::string_view, 13> kSizes{
    "batch",  "m",     "n",        "k",        "rows",      "columns", "threads",
    "length", "heads", "kv_heads", "head_dim", "value_dim", "window"};

std::string fault_of_kernel(const MeasuredKernel& kernel) {
  for (const std::string_view name : {kGemm, kAttention, kSoftmaxAlone})
    if (kernel.kernel.starts_with(name)) return {};
  return find_pass(kernel.kernel) != nullptr
             ? ""
             : "is neither gemm, attention_fwd, attention_bwd, softmax_alone_fwd nor a pass";
}

std::string fault_of_sizes(const MeasuredKernel& kernel) {
  for (const auto& [name, formula] : kernel.sizes)
    if (std::ranges::find(kSizes, name) == kSizes.end())
      return fmt::format("has no size '{}'; there are {}", name, fmt::join(kSizes, ", "));
  return fault_of(kernel.sizes);
}

std::string fault_of_attention(const std::string& name) {
  const auto known = find_attention(name);
  if (name.empty() || (known && *known != AttentionImplementation::kUnfused)) return {};
  return fmt::format("'{}' is no kernel of fused attention", name);
}

constexpr const char* kConditions =
    "Rows that it holds for: column -> part of its text, or \"=text\", \"!part\", \"!=text\".";

}  // namespace

const yaml::Table<MeasuredKernel>& yaml_table(const MeasuredKernel*) {
  using K = MeasuredKernel;
  static const auto table =
      yaml::Table<K>("measured_kernel", "A kernel that rows of a table measure.")
          .required("kernel", &K::kernel, "gemm, attention_fwd, softmax_alone_fwd or a pass.")
          .optional("where", &K::where, kConditions)
          .required("sizes", &K::sizes, "Size -> formula of columns.")
          .optional("accumulate", &K::accumulate, "Rows whose product adds to its result.")
          .optional("apart", &K::apart, "Each product of the batch is a launch of its own.")
          .optional("causal", &K::causal, "Attention has a causal mask.")
          .optional("causal_column", &K::causal_column,
                    "Column that begins with 0 where there is no causal mask.")
          .optional("implementation", &K::implementation, "Kernel of attention.")
          .optional("dtype", &K::dtype, "Data type (default: the row's).",
                    yaml::one_of(dtype_names()))
          .check("kernel", fault_of_kernel)
          .check("sizes", fault_of_sizes)
          .check("implementation", [](const K& k) { return fault_of_attention(k.implementation); });
  return table;
}

const yaml::Table<MeasuredOperator>& yaml_table(const MeasuredOperator*) {
  using O = MeasuredOperator;
  static const auto table =
      yaml::Table<O>("measured_operator", "What some rows of a table measure.")
          .optional("where", &O::where, kConditions)
          .optional("name", &O::name, "Name in summaries (default: the last kernel's).")
          .required("kernels", &O::kernels, "Kernels that run one after the other.")
          .optional("backward", &O::backward,
                    "Kernels of the backward pass (default: those of `kernels`).")
          .optional("counts", &O::counts, "FLOPs that rates count, as a multiple of ours.",
                    yaml::positive())
          .optional("zero_gradients", &O::zero_gradients,
                    "The backward pass multiplies zeros, which draws little power.")
          .optional("pass_share", &O::pass_share,
                    "Share of the memory bandwidth that passes reach which are no usual kernels.",
                    yaml::positive(), yaml::at_most(1));
  return table;
}

const yaml::Table<MeasuredTime>& yaml_table(const MeasuredTime*) {
  using T = MeasuredTime;
  static const auto table =
      yaml::Table<T>("measured_time", "A time in each line of a table.")
          .required("column", &T::column, "Its column.")
          .required("unit", &T::unit, "What a 1 in the column means.", yaml::positive())
          .optional("part", &T::part, "Added to the row's id; bwd: of the backward pass.")
          .optional("optional", &T::optional, "An empty cell gives no row.");
  return table;
}

const yaml::Table<SkippedRows>& yaml_table(const SkippedRows*) {
  using S = SkippedRows;
  static const auto table =
      yaml::Table<S>("skipped_rows", "Rows that are not predicted.")
          .optional("where", &S::where, kConditions)
          .optional("equal", &S::equal, "Two columns whose numbers differ by less than 1 %.")
          .required("reason", &S::reason, "Why; {column} stands for a cell.", yaml::non_empty())
          .check("equal", [](const S& skip) {
            return skip.equal.empty() || skip.equal.size() == 2 ? "" : "must name two columns";
          });
  return table;
}

const yaml::Table<OtherRow>& yaml_table(const OtherRow*) {
  using O = OtherRow;
  static const auto table =
      yaml::Table<O>("other_row", "A number in another row of the table.")
          .required("column", &O::column, "The number's column.")
          .required("where", &O::where, kConditions)
          .required("same", &O::same, "Columns that have the same text in both rows.");
  return table;
}

const yaml::Table<KernelFormat>& yaml_table(const KernelFormat*) {
  using F = KernelFormat;
  static const auto table =
      yaml::Table<F>("kernel_table", "How tables of measured kernels write things down.")
          .folder("tables/kernels")
          .required("name", &F::name, "Name in messages.")
          .required("columns", &F::columns, "Columns that every table of the format has.",
                    yaml::non_empty())
          .optional("pairs", &F::pairs, "A column whose pairs (b=1, m=64) count as columns.")
          .optional("times", &F::times, "Each gives a row of every line (default: one by `rate`).")
          .optional("rate", &F::rate, "Column in TFLOP/s, for rows without a time.")
          .optional("dtype", &F::dtype, "Data type (default: column `dtype`, or bf16).",
                    yaml::one_of(dtype_names()))
          .optional("sustained", &F::sustained, "Measured in continuous use.")
          .optional("unknown", &F::unknown, "Reason of rows that no operator fits.")
          .optional("operators", &F::operators, "What rows measure; the first that fits counts.")
          .optional("skip", &F::skip, "Rows that are not predicted; the first that fits counts.")
          .optional("values", &F::values, "Name -> formula of columns.")
          .optional("assumed", &F::assumed, "Name -> number that rows do not state.")
          .optional("others", &F::others, "Name -> number in another row of the table.")
          .optional("implementation", &F::implementation, "Column that names attention's kernel.")
          .optional("implementations", &F::implementations, "Part of its text -> the kernel.")
          .check("values", [](const F& format) { return fault_of(format.values); })
          .check("implementations", [](const F& format) {
            std::string fault;
            for (const auto& [word, name] : format.implementations)
              if (fault.empty()) fault = fault_of_attention(name);
            return fault;
          });
  return table;
}

Result<std::vector<KernelFormat>> read_kernel_formats(yaml::Loader& loader) {
  std::vector<KernelFormat> formats;
  for (const std::string& name : loader.names<KernelFormat>()) {
    FORESHARD_ASSIGN(auto format, loader.read_ref<KernelFormat>(name));
    formats.push_back(std::move(format));
  }
  std::ranges::stable_sort(formats, std::ranges::greater(),
                           [](const KernelFormat& format) { return format.columns.size(); });
  return formats;
}

bool has_columns(const CsvTable& table, const std::vector<std::string>& columns) {
  return std::ranges::all_of(
      columns, [&](const std::string& column) { return table.column(column).has_value(); });
}

std::vector<KernelRow> kernel_rows(const KernelFormat& format, const CsvTable& table,
                                   std::string_view name) {
  Others others;
  if (!format.others.empty())
    for (const auto& line : table.rows) Line(format, table, line, name, others).add_to(others);
  const std::vector<MeasuredTime> by_rate(1);
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows)
    for (const MeasuredTime& time : format.times.empty() ? by_rate : format.times)
      if (Line reader(format, table, line, name, others); !reader.lacks(time))
        rows.push_back(reader.row(time));
  return rows;
}

}  // namespace foreshard::accuracy
