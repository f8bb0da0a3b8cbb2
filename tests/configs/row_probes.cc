// Probes of the formats of tables of measured steps and kernels.
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <set>

#include "base/csv.h"
#include "base/yaml/describe.h"
#include "evidence/row_format.h"
#include "tests/configs/probes.h"

namespace foreshard {
namespace {

constexpr const char* kShippedFolder = FORESHARD_SOURCE_DIR "/configs";

std::string understood(const accuracy::RowFormat& format, const accuracy::RowFormat& shipped) {
  std::string text;
  for (const auto& each : shipped.frameworks) {
    const auto& found = format.framework_named(each.framework, each.source, each.notes);
    text += fmt::format("{} {} {} {} {} {} {} {};", found.take.name, found.zero_stage,
                        found.vocabulary.value_or(0), yaml::name_of(found.stages),
                        found.one_sequence_with_experts, found.is_assumed, found.only_gpt,
                        found.narrow_states);
  }
  for (const auto& each : shipped.devices) {
    const auto* found = format.device_named(each.gpu, each.source, each.notes);
    text += found == nullptr ? "-;" : found->take.name + ";";
  }
  for (const auto& each : shipped.families) {
    const auto* found = format.family_named(each.word);
    text += found == nullptr ? "-;" : yaml::echo(*found);
  }
  for (const std::string& word : {format.gated_family, format.plain_family})
    text += yaml::echo(format.family_called(word));
  for (const auto& each : shipped.hybrids) {
    const auto* found = format.hybrid_named(each.name);
    text += found == nullptr ? "-;" : found->take.name + ";";
  }
  for (const auto& each : shipped.schedules) {
    const auto* found = format.schedule_named(each.word);
    text += found == nullptr ? "-;" : yaml::echo(*found);
  }
  return text;
}

// What rows say in a table with the shipped columns, each of another value, and in tables that
// lack one of them.
std::string read_columns(const accuracy::RowFormat& format, const accuracy::RowFormat& shipped) {
  std::string text;
  for (const auto& [missing, ignored] : shipped.columns) {
    std::string header;
    std::string values;
    int value = 1;
    for (const auto& [ours, theirs] : shipped.columns) {
      ++value;
      if (ours == missing && ours != "notes") continue;
      header += theirs + ",";
      values += std::to_string(value) + ",";
    }
    header += "end\n";
    values += "0\n";
    const auto table = read_csv(header + values, "table");
    const auto rows = accuracy::read_training(*table, format, "table");
    if (!rows) {
      text += rows.error().message;
      continue;
    }
    const accuracy::TrainingRow& row = rows->front();
    for (const auto& each : {row.num_gpus, row.gpus_per_node, row.layers, row.hidden, row.heads,
                             row.kv_heads, row.ffn, row.vocab, row.seq, row.experts, row.topk,
                             row.tp, row.pp, row.vpp, row.dp, row.ep, row.mbs, row.gbs})
      text += std::to_string(each.value_or(0)) + ",";
    for (const auto& each :
         {row.id, row.source, row.framework, row.gpu, row.model_name, row.cp, row.zero_stage,
          row.recompute, row.seq_parallel, row.precision, row.metric, row.unit, row.notes})
      text += each + ",";
    text +=
        fmt::format("{},{},{},{};", row.gpu_mem_gb.value_or(0),
                    row.internode_gbps_per_gpu.value_or(0), row.parameters.value_or(0), row.value);
  }
  return text;
}

using Cells = std::map<std::string, std::string>;

// Cells that meet the conditions: for each text of each condition one row, with the first text of
// the others; and one that meets none.
std::vector<Cells> cells_for(const std::vector<accuracy::Conditions>& together) {
  Cells first;
  std::vector<Cells> all{{}};
  const auto cell_of = [](const std::string& text) {
    if (text.starts_with("!")) return std::string();
    return text.starts_with("=") ? text.substr(1) : text;
  };
  for (const auto& conditions : together)
    for (const auto& [column, words] : conditions)
      if (column != "part" && !words.words.empty()) first[column] += cell_of(words.words.front());
  all.push_back(first);
  for (const auto& conditions : together)
    for (const auto& [column, words] : conditions)
      for (const std::string& word : words.words)
        if (column != "part") {
          all.push_back(first);
          all.back()[column] =
              word.starts_with("!") ? word.substr(word.find_first_not_of("!=")) : cell_of(word);
        }
  return all;
}

// All sets of conditions of a format that one row may meet.
std::vector<Cells> rows_of(const accuracy::KernelFormat& format) {
  std::vector<std::vector<accuracy::Conditions>> sets;
  for (const auto& known : format.operators) {
    sets.push_back({known.where});
    for (const auto* kernels : {&known.kernels, &known.backward})
      for (const auto& kernel : *kernels)
        sets.insert(sets.end(), {{known.where, kernel.where}, {known.where, kernel.accumulate}});
  }
  for (const auto& skip : format.skip) sets.push_back({skip.where});
  for (const auto& [name, other] : format.others) sets.push_back({other.where});
  std::vector<Cells> all;
  for (const auto& set : sets)
    for (auto& cells : cells_for(set)) all.push_back(std::move(cells));
  const auto with = all;
  for (const auto& [word, take] : format.implementations)
    for (auto cells : with) {
      cells[format.implementation] = word;
      all.push_back(std::move(cells));
    }
  return all;
}

// The names in a formula.
void add_names(const std::string& formula, std::set<std::string>& names) {
  std::string word;
  for (const char c : formula + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else {
      if (!word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) == 0)
        names.insert(word);
      word.clear();
    }
  }
}

std::string read_kernels(const accuracy::KernelFormat& format,
                         const accuracy::KernelFormat& shipped) {
  std::set<std::string> names{"source", "gpu", "kernel_source", "dtype"};
  names.insert(shipped.columns.begin(), shipped.columns.end());
  std::set<std::string> numbers;
  for (const auto& known : shipped.operators)
    for (const auto* kernels : {&known.kernels, &known.backward})
      for (const auto& kernel : *kernels) {
        for (const auto& [size, formula] : kernel.sizes) add_names(formula, numbers);
        if (!kernel.causal_column.empty()) names.insert(kernel.causal_column);
      }
  for (const auto& [name, formula] : shipped.values) add_names(formula, numbers);
  for (const char* word : {"max", "min", "or"}) numbers.erase(word);
  for (const auto& [name, formula] : shipped.values) numbers.erase(name);
  for (const auto& [name, number] : shipped.assumed) numbers.erase(name);
  for (const auto& [name, other] : shipped.others) {
    numbers.erase(name);
    names.insert(other.column);
    names.insert(other.same.begin(), other.same.end());
  }
  for (const auto& time : shipped.times) names.insert(time.column);
  if (!shipped.rate.empty()) names.insert(shipped.rate);
  const auto cells = rows_of(shipped);
  for (const auto& row : cells)
    for (const auto& [column, cell] : row)
      if (shipped.pairs.empty() || !numbers.contains(column)) names.insert(column);
  if (shipped.pairs.empty()) names.insert(numbers.begin(), numbers.end());
  if (!shipped.pairs.empty()) names.insert(shipped.pairs);
  if (shipped.name == "attention rates")
    for (const char* column : {"batch", "seq", "q_heads", "kv_heads", "head_dim_qk", "head_dim_v"})
      names.insert(column);

  std::string header;
  for (const std::string& name : names) header += "\"" + name + "\",";
  std::string lines;
  int salt = 0;
  for (const std::string_view variant : {"", "alike", "one", "no number", "0"}) {
    for (const auto& row : cells) {
      ++salt;
      int value = 2;
      std::string line;
      for (const std::string& name : names) {
        value += 2 + salt % 2;
        const auto given = row.find(name);
        std::string cell = given != row.end() ? given->second : std::to_string(64 * value);
        if (given == row.end() && variant == "alike") cell = "4096";
        if (given == row.end() && variant == "one") cell = "1";
        if (given == row.end() && variant == "no number" && salt % 3 == 0) cell.clear();
        if (given == row.end() && (name == "dtype" || name == "source")) cell.clear();
        if (name == "gpu" && given == row.end()) cell = "H100";
        if (name.starts_with("causal")) cell = std::to_string(salt % 3);
        if (name == "model" || name == "tp") cell += given == row.end() ? "x" : "";
        if (name == "tp") cell = "2";
        const bool is_time =
            std::ranges::find(shipped.times, name, &accuracy::MeasuredTime::column) !=
            shipped.times.end();
        if (is_time && !shipped.rate.empty() && salt % 2 == 0) cell.clear();
        if (name == shipped.pairs && given == row.end()) {
          cell = "window 128";
          for (const std::string& pair : numbers)
            cell += ", " + pair + "=" + std::to_string(64 * (value += 3));
          for (const auto& [column, text] : row)
            if (!names.contains(column)) cell.append(", ").append(column).append("=").append(text);
        }
        line += "\"" + cell + "\",";
      }
      lines += line + "\n";
    }
  }
  const auto table = read_csv(
      header + "end\n" +
          [&] {
            std::string text;
            for (std::size_t at = 0; at < lines.size();) {
              const std::size_t end = lines.find('\n', at);
              text += lines.substr(at, end - at) + "0\n";
              at = end + 1;
            }
            return text;
          }(),
      "table");
  if (!table) return table.error().message;
  std::string text;
  for (const std::string& column : shipped.columns) {
    CsvTable without{.header = shipped.columns, .rows = {}};
    std::erase(without.header, column);
    text += accuracy::has_columns(without, format.columns) ? "+" : "-";
  }
  text += accuracy::has_columns(*table, format.columns) ? "yes;" : "no;";
  for (const auto& row : accuracy::kernel_rows(format, *table, "table")) {
    text += fmt::format("{} {} {} {} {} {} {} {} ", row.id, row.operation, row.blocks.count,
                        row.blocks.threads, row.pass_share.value_or(0), static_cast<int>(row.duty),
                        row.draws_little, row.measured / 1_s);
    for (const Kernel& kernel : row.kernels) {
      text += describe(kernel) + ",";
      if (const auto* gemm = std::get_if<Gemm>(&kernel))
        text += fmt::format("{}{}{}", gemm->batch, gemm->accumulate, gemm->apart);
      if (const auto* a = std::get_if<Attention>(&kernel))
        text += fmt::format("{} {} {} {} {} {} {} {}", a->batch, a->kv_heads, a->head_dim,
                            a->value_dim, a->window, a->causal, static_cast<int>(a->direction),
                            name_of(a->implementation));
    }
    for (const std::string& name : row.assumed) text += name + ",";
    text += row.obstacle + ";";
  }
  return text;
}

}  // namespace

Probes<accuracy::KernelFormat> probes_of(const accuracy::KernelFormat*, const std::string& name) {
  yaml::Loader loader({.catalogue = {kShippedFolder}});
  const auto shipped = *loader.read_file<accuracy::KernelFormat>(
      std::string(kShippedFolder) + "/tables/kernels/" + name + ".yaml");
  return {
      [shipped](const accuracy::KernelFormat& format) { return read_kernels(format, shipped); }};
}

Probes<accuracy::RowFormat> probes_of(const accuracy::RowFormat*, const std::string& name) {
  const auto shipped = *yaml::Loader({.catalogue = {kShippedFolder}})
                            .read_file<accuracy::RowFormat>(std::string(kShippedFolder) +
                                                            "/tables/" + name + ".yaml");
  return {[shipped](const accuracy::RowFormat& format) { return understood(format, shipped); },
          [shipped](const accuracy::RowFormat& format) { return read_columns(format, shipped); }};
}

}  // namespace foreshard
