#include "tests/validate/replay/gpu/fake_nccl.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <cuda_bf16.h>
#include <map>
#include <mutex>
#include <vector>

#include "validate/replay/gpu/communicators.h"

// Last: it defines names that CUDA's headers use for parameters.
#include "validate/replay/gpu/emulation.h"

namespace foreshard::replay::gpu {

FakeNccl& fake_nccl() {
  static FakeNccl fake;
  return fake;
}

FakeRank& fake_rank() {
  thread_local FakeRank rank;
  return rank;
}

namespace {

struct Op {
  enum class Kind { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kSend, kReceive };
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  int peer;
};

// What the members of one communicator share.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<Op>> ops;  // by member, of the operation that is gathering
  std::size_t arrived = 0;
  std::uint64_t round = 0;
};
struct Comm {
  Shared* shared;
  int rank;
};

std::mutex& lock() {
  static std::mutex mutex;
  return mutex;
}
Shared& shared_of(std::uint64_t id) {
  static std::map<std::uint64_t, Shared> all;
  const std::lock_guard guard(lock());
  return all[id];
}

std::size_t size_of_type(ncclDataType_t type) {
  return type == ncclFloat32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}
float get(const void* data, std::size_t i, ncclDataType_t type) {
  if (type == ncclFloat32) return static_cast<const float*>(data)[i];
  return static_cast<float>(static_cast<const __nv_bfloat16*>(data)[i]);
}
void put(void* data, std::size_t i, ncclDataType_t type, float value) {
  if (type == ncclFloat32)
    static_cast<float*>(data)[i] = value;
  else
    static_cast<__nv_bfloat16*>(data)[i] = __nv_bfloat16(value);
}
void copy(void* to, std::size_t to_at, const void* from, std::size_t from_at, const Op& op) {
  const std::size_t size = size_of_type(op.type);
  std::memmove(static_cast<char*>(to) + to_at * size,
               static_cast<const char*>(from) + from_at * size, op.count * size);
}

void reduce(std::vector<std::vector<Op>>& ops, std::size_t me, std::size_t offset) {
  const Op& mine = ops[me].front();
  for (std::size_t i = 0; i < mine.count; ++i) {
    float sum = 0;
    for (const auto& other : ops) sum += get(other.front().send, offset + i, mine.type);
    if (fake_nccl().wrong && mine.count > 1) {
      sum += 1;
      fake_nccl().wrong = false;
    }
    put(mine.receive, i, mine.type, sum);
  }
}

void carry_out(std::vector<std::vector<Op>>& ops) {
  const std::size_t members = ops.size();
  for (std::size_t me = 0; me < members; ++me)
    for (const Op& op : ops[me]) {
      switch (op.kind) {
        case Op::Kind::kAllReduce:
          if (op.receive != op.send) reduce(ops, me, 0);
          break;
        case Op::Kind::kReduceScatter:
          reduce(ops, me, me * op.count);
          break;
        case Op::Kind::kAllGather:
          for (std::size_t m = 0; m < members; ++m)
            copy(op.receive, m * op.count, ops[m].front().send, 0, op);
          break;
        case Op::Kind::kBroadcast:
          copy(op.receive, 0, ops[static_cast<std::size_t>(op.peer)].front().send, 0, op);
          break;
        case Op::Kind::kReceive: {
          // The n-th receive from a peer takes the peer's n-th send to here.
          std::size_t number = 0;
          for (const Op& earlier : ops[me]) {
            if (&earlier == &op) break;
            if (earlier.kind == op.kind && earlier.peer == op.peer) ++number;
          }
          for (const Op& theirs : ops[static_cast<std::size_t>(op.peer)])
            if (theirs.kind == Op::Kind::kSend && theirs.peer == static_cast<int>(me) &&
                number-- == 0)
              copy(op.receive, 0, theirs.send, 0, op);
          break;
        }
        case Op::Kind::kSend:
          break;
      }
    }
}

ncclResult_t meet(Comm& comm, std::vector<Op> ops) {
  if (!fake_rank().at_first_operation) fake_rank().at_first_operation = emulation::launched();
  Shared& shared = *comm.shared;
  std::unique_lock guard(shared.mutex);
  if (fake_nccl().waits_once && shared.round > 0) return ncclSuccess;
  shared.ops[static_cast<std::size_t>(comm.rank)] = std::move(ops);
  const std::uint64_t round = shared.round;
  if (++shared.arrived == shared.ops.size()) {
    carry_out(shared.ops);
    shared.arrived = 0;
    ++shared.round;
    shared.changed.notify_all();
  } else if (!shared.changed.wait_for(guard, std::chrono::seconds(20),
                                      [&] { return shared.round != round; })) {
    return ncclSystemError;
  }
  return ncclSuccess;
}

struct Grouped {
  int depth = 0;
  Comm* comm = nullptr;
  std::vector<Op> ops;
};
Grouped& grouped() {
  thread_local Grouped group;
  return group;
}

ncclResult_t issue(ncclComm_t handle, const Op& op) {
  auto* comm = reinterpret_cast<Comm*>(handle);
  if (grouped().depth > 0) {
    grouped().comm = comm;
    grouped().ops.push_back(op);
    return ncclSuccess;
  }
  return meet(*comm, {op});
}

ncclResult_t group_start() {
  ++grouped().depth;
  return ncclSuccess;
}
ncclResult_t group_end() {
  Grouped& group = grouped();
  ncclResult_t result = ncclSuccess;
  if (--group.depth == 0 && group.comm != nullptr) result = meet(*group.comm, std::move(group.ops));
  group = Grouped{};
  return result;
}
ncclResult_t unique_id(ncclUniqueId* id) {
  static std::uint64_t next = 0;
  const std::lock_guard guard(lock());
  *id = {};
  ++next;
  std::memcpy(id->internal, &next, sizeof(next));
  return ncclSuccess;
}
ncclResult_t init(ncclComm_t* comm, int members, ncclUniqueId id, int rank, ncclConfig_t*) {
  if (!fake_rank().at_init) fake_rank().at_init = emulation::launched();
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  Shared& shared = shared_of(number);
  const std::lock_guard guard(shared.mutex);
  shared.ops.resize(static_cast<std::size_t>(members));
  *comm = reinterpret_cast<ncclComm_t>(new Comm{&shared, rank});
  return ncclSuccess;
}
ncclResult_t end(ncclComm_t comm) {
  delete reinterpret_cast<Comm*>(comm);
  return ncclSuccess;
}

}  // namespace

std::string nccl_version_text(int) {
  return "0.0.0";
}

Result<NcclApi> load_nccl() {
  if (fake_nccl().absent) return Error{Error::Code::kUnsupported, "NCCL is not here"};
  using K = Op::Kind;
  NcclApi api{.path = "fake", .version = kOldestNccl};
  api.get_error_string = [](ncclResult_t) { return "an error"; };
  api.get_last_error = [](ncclComm_t) { return ""; };
  api.get_unique_id = unique_id;
  api.comm_init = init;
  api.comm_state = [](ncclComm_t, ncclResult_t* state) {
    *state = ncclSuccess;
    return ncclSuccess;
  };
  api.comm_finalize = [](ncclComm_t) { return ncclSuccess; };
  api.comm_destroy = end;
  api.comm_abort = end;
  api.group_start = group_start;
  api.group_end = group_end;
  api.all_reduce = [](const void* s, void* r, std::size_t n, ncclDataType_t t, ncclRedOp_t,
                      ncclComm_t c, cudaStream_t) {
    return issue(c, {K::kAllReduce, s, r, n, t, 0});
  };
  api.all_gather = [](const void* s, void* r, std::size_t n, ncclDataType_t t, ncclComm_t c,
                      cudaStream_t) {
    return issue(c, {K::kAllGather, s, r, n, t, 0});
  };
  api.reduce_scatter = [](const void* s, void* r, std::size_t n, ncclDataType_t t, ncclRedOp_t,
                          ncclComm_t c, cudaStream_t) {
    return issue(c, {K::kReduceScatter, s, r, n, t, 0});
  };
  api.broadcast = [](const void* s, void* r, std::size_t n, ncclDataType_t t, int root,
                     ncclComm_t c, cudaStream_t) {
    return issue(c, {K::kBroadcast, s, r, n, t, root});
  };
  api.send = [](const void* s, std::size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                cudaStream_t) {
    return issue(c, {K::kSend, s, nullptr, n, t, peer});
  };
  api.receive = [](void* r, std::size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t) {
    return issue(c, {K::kReceive, nullptr, r, n, t, peer});
  };
  return api;
}

}  // namespace foreshard::replay::gpu
