/// \file
/// The readers behind `import_formats`, one file each.
#pragma once

#include "topology/import/import.h"

namespace foreshard::internal {

/// nccl_xml.cc
bool looks_like_nccl_xml(std::string_view text);
Result<Imported> read_nccl_xml(const ImportRequest& request, yaml::Loader& loader);
/// nvidia_smi.cc
bool looks_like_nvidia_smi(std::string_view text);
Result<Imported> read_nvidia_smi(const ImportRequest& request, yaml::Loader& loader);

/// slurm.cc
bool looks_like_slurm(std::string_view text);
Result<Imported> read_slurm(const ImportRequest& request, yaml::Loader& loader);
/// paddle.cc
bool looks_like_paddle(std::string_view text);
Result<Imported> read_paddle(const ImportRequest& request, yaml::Loader& loader);

/// foreign.cc: the refusal of a text of another tool that has no topology in it (rocm-smi, lstopo);
/// nothing for any other text.
/// \param known  a format recognises the text: its sign may then be a comment, or the output of a
///     command before.
Status foreign_text(const ImportRequest& request, bool known);

/// "name:line: why", or "name:line: element: why".
Error import_error(const ImportRequest& request, std::int64_t line, const std::string& why);

}  // namespace foreshard::internal
