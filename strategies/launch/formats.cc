// The table of formats; a new one gets a line here. Texts are recognised in this order.
#include "strategies/launch/internal/formats.h"

#include <array>

namespace foreshard::launch {
namespace internal {

std::span<const Format* const> all_formats() {
  static const std::array<const Format*, 6> kFormats{
      &deepspeed_format(),       &torchtitan_format(), &accelerate_format(),
      &megatron_bridge_format(), &nemo_format(),       &megatron_format(),
  };
  return kFormats;
}

}  // namespace internal

std::vector<FormatInfo> formats() {
  std::vector<FormatInfo> infos;
  for (const internal::Format* format : internal::all_formats())
    infos.push_back({format->name, format->summary});
  return infos;
}

}  // namespace foreshard::launch
