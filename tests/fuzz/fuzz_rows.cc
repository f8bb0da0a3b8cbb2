// Any bytes as a table of measurements: an error that names the table, or rows of its kind. A row
// of training is refused in words, or is a study in YAML.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/csv.h"
#include "base/yaml/leaves.h"
#include "evidence/training.h"
#include "tests/fuzz/fuzzer.h"

#include "validate/tables/table.h"

namespace foreshard::fuzz::rows_test {
using namespace accuracy;

const std::vector<std::filesystem::path> kCatalogue{FORESHARD_SOURCE_DIR "/configs"};
constexpr std::size_t kMost = 20;  // rows that are made studies

void read_kernels(const CsvTable& table, yaml::Loader& loader) {
  static const auto formats = read_kernel_formats(loader);
  FORESHARD_CHECK(formats.has_value());
  for (const KernelFormat& format : *formats)
    if (has_columns(table, format.columns)) (void)kernel_rows(format, table, "t.csv");
}

void read_steps(const CsvTable& table, const RowFormat& format, yaml::Loader& loader) {
  const auto rows = read_training(table, format, "t.csv");
  if (!rows) {
    FORESHARD_CHECK(rows.error().message.starts_with("t.csv:"));
    return;
  }
  for (std::size_t i = 0; i < std::min(kMost, rows->size()); ++i) {
    const auto setting = setting_of((*rows)[i], format, loader);
    const auto text =
        setting ? study_text((*rows)[i], *setting, loader) : Result<std::string>(setting.error());
    FORESHARD_CHECK(text ? yaml::leaves(*text, "study").has_value()
                         : !text.error().message.empty());
  }
}

void read_collectives(const CsvTable& table, yaml::Loader& loader) {
  const auto rows = collective_rows(table, "t.csv");
  if (!rows) return;
  for (std::size_t i = 0; i < std::min(kMost, rows->size()); ++i)
    if (const auto group = measured_group((*rows)[i], {}, loader); !group)
      FORESHARD_CHECK(!group.error().message.empty());
}

}  // namespace foreshard::fuzz::rows_test

FORESHARD_FUZZER(fuzz_rows) {
  using namespace foreshard;
  using namespace foreshard::fuzz::rows_test;
  const auto table = read_csv(std::string_view(reinterpret_cast<const char*>(data), size), "t.csv");
  if (!table) return 0;
  static yaml::Loader loader({.catalogue = kCatalogue});
  const auto format = format_of(*table, kCatalogue);
  FORESHARD_CHECK(format.has_value());
  if (*format) read_steps(*table, **format, loader);
  if (has_columns(*table, collective_columns())) read_collectives(*table, loader);
  read_kernels(*table, loader);
  return 0;
}
