// The functions of NCCL, loaded at run time. Tests link others in their place.
#include <array>

#include "validate/replay/gpu/communicators.h"

namespace foreshard::replay::gpu {

std::string nccl_version_text(int version) {
  // Until 2.8 the code was major * 1000 + minor * 100 + patch. Source: nccl.h, NCCL_VERSION.
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

Result<NcclApi> load_nccl() {
  constexpr std::array kNames{"libnccl.so.2", "libnccl.so"};
  auto library = Library::open(
      "NCCL", kNames, "NCCL_HOME",
      "install NCCL 2.18 or later, or name its folder in NCCL_HOME or FORESHARD_LIBRARY_PATH (of "
      "Python wheels it is nvidia/nccl/lib)");
  if (!library) return library.error();
  NcclApi api;
  api.path = library->path();
  decltype(&ncclGetVersion) get_version = nullptr;
  if (!library->find("ncclGetVersion", get_version) || get_version(&api.version) != ncclSuccess)
    return Error{Error::Code::kUnsupported,
                 api.path + " is not NCCL: it does not report a version"};
  if (api.version < kOldestNccl)
    return Error{Error::Code::kUnsupported, "NCCL " + nccl_version_text(api.version) + " (" +
                                                api.path + ") is too old: 2.18 is needed"};
  const bool complete = library->find("ncclGetErrorString", api.get_error_string) &&
                        library->find("ncclGetLastError", api.get_last_error) &&
                        library->find("ncclGetUniqueId", api.get_unique_id) &&
                        library->find("ncclCommInitRankConfig", api.comm_init) &&
                        library->find("ncclCommGetAsyncError", api.comm_state) &&
                        library->find("ncclCommFinalize", api.comm_finalize) &&
                        library->find("ncclCommDestroy", api.comm_destroy) &&
                        library->find("ncclCommAbort", api.comm_abort) &&
                        library->find("ncclGroupStart", api.group_start) &&
                        library->find("ncclGroupEnd", api.group_end) &&
                        library->find("ncclAllReduce", api.all_reduce) &&
                        library->find("ncclAllGather", api.all_gather) &&
                        library->find("ncclReduceScatter", api.reduce_scatter) &&
                        library->find("ncclBroadcast", api.broadcast) &&
                        library->find("ncclSend", api.send) &&
                        library->find("ncclRecv", api.receive);
  if (!complete)
    return Error{Error::Code::kUnsupported, api.path + " lacks functions of NCCL 2.18"};
  return api;
}

}  // namespace foreshard::replay::gpu
