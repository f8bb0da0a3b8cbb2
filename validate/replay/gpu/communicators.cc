#include "validate/replay/gpu/communicators.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "base/check.h"

#include "strategies/program/ir/group.h"
#include "validate/replay/gpu/cuda_error.h"

namespace foreshard::replay::gpu {
namespace {

using program::CollectiveKind;

// How long to wait for the peer that makes the id; the watchdog ends the wait earlier and knows
// which rank is late.
constexpr Seconds kPatience = 240_h;

// The id as hexadecimal text.
std::string text_of(const ncclUniqueId& id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : id.internal) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}
std::optional<ncclUniqueId> id_of(std::string_view text) {
  ncclUniqueId id{};
  if (text.size() != 2 * sizeof(id.internal)) return std::nullopt;
  for (std::size_t i = 0; i < sizeof(id.internal); ++i) {
    const auto digit = [&](char c) -> int {
      if (c >= '0' && c <= '9') return c - '0';
      return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    id.internal[i] = static_cast<char>(high * 16 + low);
  }
  return id;
}

// Makes this rank look like a separate host to NCCL. A single channel keeps the kernels of several
// processes small enough to run concurrently.
// Source: NVIDIA, "NCCL User Guide", environment variables.
void pretend_hosts(std::int32_t rank) {
  const std::string host = "foreshard-" + std::to_string(rank);
  const std::array<std::array<const char*, 2>, 9> settings{{{"NCCL_HOSTID", host.c_str()},
                                                            {"NCCL_P2P_DISABLE", "1"},
                                                            {"NCCL_SHM_DISABLE", "1"},
                                                            {"NCCL_IB_DISABLE", "1"},
                                                            {"NCCL_NVLS_ENABLE", "0"},
                                                            {"NCCL_NET", "Socket"},
                                                            {"NCCL_SOCKET_IFNAME", "lo"},
                                                            {"NCCL_MAX_NCHANNELS", "1"},
                                                            {"NCCL_MAX_CTAS", "1"}}};
  for (const auto& [name, value] : settings) ::setenv(name, value, 0);
}

// \return nothing for dtypes that NCCL does not reduce in this version.
std::optional<ncclDataType_t> nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kTf32:
      return ncclFloat32;
    case DType::kFp16:
      return ncclFloat16;
    case DType::kBf16:
      return ncclBfloat16;
    case DType::kFp8:
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
      return ncclFloat8e4m3;
#else
      return std::nullopt;
#endif
    case DType::kFp4:
      return std::nullopt;
    case DType::kInt8:
      return ncclInt8;
    case DType::kInt32:
      return ncclInt32;
    case DType::kInt64:
      return ncclInt64;
  }
  return std::nullopt;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

}  // namespace

struct Communicators::State {
  const RankPlan* plan = nullptr;
  NcclApi api{};
  std::vector<ncclComm_t> comms{};  // one per communicator of the plan
  ncclComm_t world = nullptr;
  // Task of a group call -> its messages; cached, because messages_of reads all ranks' transfers.
  std::unordered_map<const program::Task*, std::vector<Message>> messages{};
  void* token = nullptr;  // one float that `meet` adds up
  bool aborted = false;

  std::vector<ncclComm_t> all() const {
    std::vector<ncclComm_t> result = comms;
    result.push_back(world);
    return result;
  }

  Status check(ncclResult_t result, const std::string& what) const {
    if (result == ncclSuccess || result == ncclInProgress) return {};
    std::string text = what + ": NCCL: " + api.get_error_string(result);
    const char* last = api.get_last_error(nullptr);
    if (last != nullptr && *last != '\0') text += " (" + std::string(last) + ")";
    return Error{Error::Code::kIo, text};
  }

  Status connect(Store& store, const std::string& key, const std::string& name, int members, int me,
                 ncclComm_t& comm) const {
    ncclUniqueId id{};
    if (me == 0) {
      FORESHARD_TRY(check(api.get_unique_id(&id), name));
      FORESHARD_TRY(store.set(key, text_of(id)));
    } else {
      FORESHARD_ASSIGN(const auto text, store.get(key, kPatience));
      const auto read = id_of(text);
      if (!read) return Error{Error::Code::kIo, "the store's value of " + key + " is no NCCL id"};
      id = *read;
    }
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    return check(api.comm_init(&comm, members, id, me, &config), "making the communicator " + name);
  }

  ncclResult_t exchange(const std::vector<Message>& mine, const unsigned char* send,
                        unsigned char* receive, std::size_t element, ncclDataType_t type,
                        ncclComm_t comm, cudaStream_t stream) const;
  ncclResult_t all_to_all(const Elements& elements, std::int32_t members, const unsigned char* send,
                          unsigned char* receive, std::size_t element, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) const;
};

Communicators::Communicators(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Communicators>> Communicators::make(const RankPlan& plan, Store& store,
                                                           bool shared, Watch& watch) {
  if (shared) pretend_hosts(plan.rank);
  watch.alone("loads NCCL");
  FORESHARD_ASSIGN(auto api, load_nccl());
  watch.alone(nullptr);
  auto state = std::make_unique<State>();
  State& s = *state;
  s.plan = &plan;
  s.api = std::move(api);
  // From here on, the destructor releases what has been created.
  std::unique_ptr<Communicators> result(new Communicators(std::move(state)));
  const auto ranks = static_cast<int>(plan.program->ranks());
  FORESHARD_TRY(s.connect(store, "nccl/all", "all ranks", ranks, plan.rank, s.world));
  watch.beat();
  for (const Communicator& communicator : plan.communicators) {
    s.comms.push_back(nullptr);
    FORESHARD_TRY(s.connect(store, "nccl/" + std::to_string(communicator.number), communicator.name,
                            static_cast<int>(communicator.members.size()), communicator.me,
                            s.comms.back()));
    watch.beat();
  }
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (plan.operations[i].communicator < 0) continue;
    const program::Task& task = plan.task(i);
    if (is_group_call(std::get<program::Communication>(task.body).kind) &&
        !s.messages.contains(&task))
      s.messages.emplace(&task, messages_of(plan, i));
  }
  FORESHARD_TRY(fault_of(cudaMalloc(&s.token, sizeof(float)), "cudaMalloc"));
  FORESHARD_TRY(fault_of(cudaMemset(s.token, 0, sizeof(float)), "cudaMemset"));
  return result;
}

Communicators::~Communicators() {
  // Communicators are not finalised, because that waits for peers, which may be gone. Operations
  // have ended or were aborted, so destroying a working communicator needs no peer.
  for (ncclComm_t comm : state_->all())
    if (comm != nullptr && !state_->aborted) state_->api.comm_destroy(comm);
  if (state_->token != nullptr) cudaFree(state_->token);
}

Status Communicators::issue(std::size_t instance, const Elements& elements, const void* send,
                            void* receive, cudaStream_t stream) {
  State& s = *state_;
  const RankPlan& plan = *s.plan;
  const Operation& operation = plan.operations[instance];
  const auto place = static_cast<std::size_t>(operation.communicator);
  const auto& body = std::get<program::Communication>(plan.task(instance).body);
  const auto members = static_cast<std::int32_t>(plan.communicators[place].members.size());
  const auto element = static_cast<std::size_t>(size_of(body.dtype).in_base());
  ncclComm_t comm = s.comms[place];

  auto type = nccl_type(body.dtype);
  if (!reduces(body.kind) && body.dtype == DType::kFp8) type = ncclInt8;  // it is only moved
  if (!type)
    return Error{Error::Code::kUnsupported, describe(plan, instance) +
                                                ": this NCCL does not reduce " +
                                                std::string(name_of(body.dtype))};
  const auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const auto* from = static_cast<const unsigned char*>(send);
  auto* to = static_cast<unsigned char*>(receive);
  const auto checked = [&](ncclResult_t result) -> Status {
    if (result == ncclSuccess) return {};
    return s.check(result, describe(plan, instance));
  };
  switch (body.kind) {
    case CollectiveKind::kAllReduce:
      return checked(
          s.api.all_reduce(send, receive, count(elements.send), *type, ncclSum, comm, stream));
    case CollectiveKind::kAllGather:
      return checked(s.api.all_gather(send, receive, count(elements.send), *type, comm, stream));
    case CollectiveKind::kReduceScatter:
      return checked(s.api.reduce_scatter(send, receive, count(elements.receive), *type, ncclSum,
                                          comm, stream));
    case CollectiveKind::kBroadcast:
      return checked(s.api.broadcast(send, receive, count(elements.receive), *type, operation.root,
                                     comm, stream));
    case CollectiveKind::kSend:
      return checked(s.api.send(send, count(elements.send), *type, operation.peer, comm, stream));
    case CollectiveKind::kReceive:
      return checked(
          s.api.receive(receive, count(elements.receive), *type, operation.peer, comm, stream));
    case CollectiveKind::kTokenExchange:  // refused when the rank was planned
    case CollectiveKind::kAllToAll:
      return checked(s.all_to_all(elements, members, from, to, element, *type, comm, stream));
    case CollectiveKind::kExchange:
    case CollectiveKind::kShift:
      return checked(
          s.exchange(s.messages.at(&plan.task(instance)), from, to, element, *type, comm, stream));
    case CollectiveKind::kToHost:  // refused when the rank was planned
    case CollectiveKind::kFromHost:
    case CollectiveKind::kOnHost:
      break;
  }
  FORESHARD_CHECK(false);
}

ncclResult_t Communicators::State::all_to_all(const Elements& elements, std::int32_t members,
                                              const unsigned char* send, unsigned char* receive,
                                              std::size_t element, ncclDataType_t type,
                                              ncclComm_t comm, cudaStream_t stream) const {
  const auto shard = static_cast<std::size_t>(elements.send / members);
  ncclResult_t result = api.group_start();
  for (std::int32_t peer = 0; result == ncclSuccess && peer < members; ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * shard * element;
    result = api.send(send + offset, shard, type, peer, comm, stream);
    if (result == ncclSuccess)
      result = api.receive(receive + offset, shard, type, peer, comm, stream);
  }
  const ncclResult_t end = api.group_end();
  return result == ncclSuccess ? end : result;
}

ncclResult_t Communicators::State::exchange(const std::vector<Message>& mine,
                                            const unsigned char* send, unsigned char* receive,
                                            std::size_t element, ncclDataType_t type,
                                            ncclComm_t comm, cudaStream_t stream) const {
  ncclResult_t result = api.group_start();
  for (const Message& message : mine) {
    if (result != ncclSuccess) break;
    const std::size_t offset = static_cast<std::size_t>(message.offset) * element;
    const auto count = static_cast<std::size_t>(message.elements);
    result = message.outgoing
                 ? api.send(send + offset, count, type, message.peer, comm, stream)
                 : api.receive(receive + offset, count, type, message.peer, comm, stream);
  }
  const ncclResult_t end = api.group_end();
  return result == ncclSuccess ? end : result;
}

Status Communicators::meet(cudaStream_t stream) {
  return state_->check(state_->api.all_reduce(state_->token, state_->token, 1, ncclFloat32, ncclSum,
                                              state_->world, stream),
                       "meeting of all ranks");
}

Status Communicators::fault() const {
  const State& s = *state_;
  const auto of = [&](ncclComm_t comm, const std::string& name) -> Status {
    ncclResult_t state = ncclSuccess;
    if (comm == nullptr || s.api.comm_state(comm, &state) != ncclSuccess) return {};
    return s.check(state, "communicator " + name);
  };
  if (s.aborted) return {};
  FORESHARD_TRY(of(s.world, "of all ranks"));
  for (std::size_t c = 0; c < s.comms.size(); ++c)
    FORESHARD_TRY(of(s.comms[c], s.plan->communicators[c].name));
  return {};
}

void Communicators::abort() {
  if (state_->aborted) return;
  state_->aborted = true;
  for (ncclComm_t comm : state_->all())
    if (comm != nullptr) state_->api.comm_abort(comm);
}

std::string Communicators::version() const {
  return nccl_version_text(state_->api.version) + " (" + state_->api.path + ")";
}

}  // namespace foreshard::replay::gpu
