#include "tests/configs/sweep_text.h"

#include <fmt/format.h>

#include "strategies/comm/sweep.h"

namespace foreshard {
namespace {

void add(std::string& text, const comm::SweepForm& form) {
  text += fmt::format("{} {} {} {};", form.algorithm, form.protocol, form.channels,
                      form.time.in_base());
}

}  // namespace

std::string sweep_text(comm::CollectiveKind kind, const comm::Participants& group,
                       const comm::Parameters& parameters) {
  static const std::vector<Bytes> sizes{0_B, 1_KiB, 2_KiB, 32_KiB, 256_KiB, 1_MiB, 16_MiB, 1_GiB};
  const auto rows = comm::sweep(kind, group, parameters, sizes, true);
  if (!rows) return rows.error().message;
  std::string text;
  for (const comm::SweepRow& row : *rows) {
    add(text, row.taken);
    for (const comm::SweepForm& form : row.all) add(text, form);
    if (row.nccl)
      text += fmt::format("{} {} {} {};", row.nccl->algorithm, comm::name_of(row.nccl->protocol),
                          row.nccl->channels, row.nccl->time.in_base());
  }
  return text;
}

std::vector<comm::Transfer> round_of(std::int64_t members) {
  std::vector<comm::Transfer> round;
  const auto count = static_cast<std::int32_t>(members);
  round.reserve(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i)
    round.push_back({.from = i, .to = (i + 1) % count, .part = 1.0 / count});
  return round;
}

}  // namespace foreshard
