#include "validate/replay/gpu/gpu_verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/check.h"

#include "validate/replay/gpu/cuda_error.h"

namespace foreshard::replay::gpu {
namespace {

using program::CollectiveKind;

constexpr std::size_t kMostFaults = 20;

const program::Communication& communication_of(const RankPlan& plan, std::size_t instance) {
  return std::get<program::Communication>(plan.task(instance).body);
}

std::string number(float value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

Status GpuExecutor::Inspector::prepare() {
  // Room for at least one element of any type.
  std::vector<std::size_t> most_send(streams_.size(), sizeof(std::int64_t));
  std::vector<std::size_t> most_receive(streams_.size(), sizeof(std::int64_t));
  std::set<DType> dtypes;
  for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
    if (plan_.operations[i].communicator < 0) continue;
    const Elements elements = elements_of(plan_, i);
    const DType dtype = communication_of(plan_, i).dtype;
    dtypes.insert(dtype);
    const auto element = static_cast<std::size_t>(size_of(dtype).in_base());
    const auto s = static_cast<std::size_t>(plan_.expansion.instances[i].stream);
    most_send[s] = std::max(most_send[s], static_cast<std::size_t>(elements.send) * element);
    most_receive[s] =
        std::max(most_receive[s], static_cast<std::size_t>(elements.receive) * element);
    most_items_ += expected_pieces(i, elements).size();
  }
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    send_.push_back(std::make_unique<DeviceMemory>());
    receive_.push_back(std::make_unique<DeviceMemory>());
    FORESHARD_TRY(send_.back()->allocate(most_send[s], "the numbers that are sent"));
    FORESHARD_TRY(receive_.back()->allocate(most_receive[s], "the numbers that are received"));
  }
  std::vector<std::int32_t> members;
  for (const Communicator& communicator : plan_.communicators) {
    first_member_.push_back(members.size());
    members.insert(members.end(), communicator.members.begin(), communicator.members.end());
  }
  const std::size_t bytes = members.size() * sizeof(std::int32_t);
  FORESHARD_TRY(members_.allocate(std::max<std::size_t>(bytes, 1), "lists of ranks"));
  const std::vector<CheckResult> fresh(most_items_, CheckResult{.first = ~0ULL});
  FORESHARD_TRY(results_.allocate(std::max<std::size_t>(1, most_items_ * sizeof(CheckResult)),
                                  "results of checks"));
  auto status = bytes == 0
                    ? cudaSuccess
                    : cudaMemcpy(members_.data(), members.data(), bytes, cudaMemcpyHostToDevice);
  const auto begin_anew = [&] {
    return fresh.empty() ? cudaSuccess
                         : cudaMemcpy(results_.data(), fresh.data(),
                                      fresh.size() * sizeof(CheckResult), cudaMemcpyHostToDevice);
  };
  if (status == cudaSuccess) status = begin_anew();
  // The kernels are loaded while no communication is under way (GpuExecutor::load_kernels).
  const Expected one{.members = static_cast<const std::int32_t*>(members_.data()), .count = 1};
  for (const DType dtype : dtypes) {
    if (status == cudaSuccess)
      status = fill_pattern(send_.front()->data(), 1, dtype, 0, 0, 0, nullptr);
    if (status == cudaSuccess && !fresh.empty())
      status = check_pattern(receive_.front()->data(), 1, dtype, one,
                             static_cast<CheckResult*>(results_.data()), nullptr);
  }
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  if (status == cudaSuccess) status = begin_anew();
  return fault_of(status, "preparing the checks");
}

// Pieces with the numbers of pattern.h's `given` (outgoing) or `expected`.
std::vector<GpuExecutor::Inspector::Piece> GpuExecutor::Inspector::exchange_pieces(
    std::size_t instance, bool outgoing) const {
  const auto communicator = static_cast<std::size_t>(plan_.operations[instance].communicator);
  const auto& members = plan_.communicators[communicator].members;
  std::vector<Piece> pieces;
  std::map<std::int32_t, std::int64_t> so_far;  // peer -> elements of earlier messages
  for (const Message& message : messages_of(plan_, instance)) {
    if (message.outgoing != outgoing) continue;
    const auto place = static_cast<std::size_t>(message.peer);
    const std::int32_t to = outgoing ? members[place] : plan_.rank;
    Piece piece{.first = message.offset,
                .count = message.elements,
                .rank = outgoing ? plan_.rank : members[place]};
    piece.expected.members = static_cast<const std::int32_t*>(members_.data()) +
                             (outgoing                ? 0
                              : first_member_.empty() ? 0
                                                      : first_member_[communicator] + place);
    piece.expected.count = 1;
    piece.expected.shard = std::max<std::int64_t>(1, message.elements);
    piece.expected.base = so_far[message.peer] + (std::int64_t{to} << 40);
    piece.expected.ordinal = plan_.operations[instance].ordinal;
    so_far[message.peer] += message.elements;
    pieces.push_back(piece);
  }
  return pieces;
}

std::vector<GpuExecutor::Inspector::Piece> GpuExecutor::Inspector::given_pieces(
    std::size_t instance, const Elements& elements) const {
  if (is_group_call(communication_of(plan_, instance).kind)) return exchange_pieces(instance, true);
  return {Piece{.first = 0, .count = elements.send, .rank = plan_.rank}};
}

std::vector<GpuExecutor::Inspector::Piece> GpuExecutor::Inspector::expected_pieces(
    std::size_t instance, const Elements& elements) const {
  const CollectiveKind kind = communication_of(plan_, instance).kind;
  if (is_group_call(kind)) return exchange_pieces(instance, false);
  if (elements.receive == 0) return {};
  const Operation& operation = plan_.operations[instance];
  const auto place = static_cast<std::size_t>(operation.communicator);
  const Communicator& communicator = plan_.communicators[place];
  const auto count = static_cast<std::int32_t>(communicator.members.size());
  const auto* members = static_cast<const std::int32_t*>(members_.data()) +
                        (first_member_.empty() ? 0 : first_member_[place]);
  Expected expected{.members = members,
                    .count = count,
                    .shard = std::max<std::int64_t>(1, elements.receive),
                    .ordinal = operation.ordinal};
  switch (kind) {
    case CollectiveKind::kAllReduce:
      expected.sum = true;
      break;
    case CollectiveKind::kReduceScatter:
      expected.sum = true;
      expected.base = communicator.me * elements.receive;
      break;
    case CollectiveKind::kAllGather:
      expected.shard = std::max<std::int64_t>(1, elements.send);
      break;
    case CollectiveKind::kTokenExchange:
    case CollectiveKind::kAllToAll:
      expected.shard = std::max<std::int64_t>(1, elements.send / count);
      expected.base = communicator.me * (elements.send / count);
      break;
    case CollectiveKind::kBroadcast:
      expected.members += operation.root;
      break;
    case CollectiveKind::kReceive:
      expected.members += operation.peer;
      break;
    case CollectiveKind::kSend:
    case CollectiveKind::kExchange:
    case CollectiveKind::kShift:
    case CollectiveKind::kToHost:  // refused when the rank was planned
    case CollectiveKind::kFromHost:
    case CollectiveKind::kOnHost:
      break;
  }
  return {Piece{.first = 0, .count = elements.receive, .expected = expected}};
}

Status GpuExecutor::Inspector::communicate(std::size_t instance, const Elements& elements,
                                           cudaStream_t stream) {
  const auto s = static_cast<std::size_t>(plan_.expansion.instances[instance].stream);
  const program::Communication& body = communication_of(plan_, instance);
  const auto element = static_cast<std::size_t>(size_of(body.dtype).in_base());
  const std::int64_t ordinal = plan_.operations[instance].ordinal;
  auto* send = static_cast<unsigned char*>(send_[s]->data());
  auto* receive = static_cast<unsigned char*>(receive_[s]->data());
  ++operations_;
  auto status = cudaSuccess;
  for (const Piece& piece : given_pieces(instance, elements))
    if (status == cudaSuccess)
      status = fill_pattern(send + static_cast<std::size_t>(piece.first) * element, piece.count,
                            body.dtype, piece.rank, ordinal, piece.expected.base, stream);
  // The receive buffer is overwritten, so that numbers of an earlier operation are not accepted.
  if (status == cudaSuccess && elements.receive > 0)
    status = cudaMemsetAsync(receive, 0x5a, static_cast<std::size_t>(elements.receive) * element,
                             stream);
  if (status != cudaSuccess) return fault_of(status, "filling");
  FORESHARD_TRY(communicators_.issue(instance, elements, send, receive, stream));
  for (const Piece& piece : expected_pieces(instance, elements)) {
    FORESHARD_CHECK(items_.size() < most_items_);
    auto* result = static_cast<CheckResult*>(results_.data()) + items_.size();
    items_.push_back({instance, piece.first, piece.count});
    status = check_pattern(receive + static_cast<std::size_t>(piece.first) * element, piece.count,
                           body.dtype, piece.expected, result, stream);
    if (status != cudaSuccess) return fault_of(status, "checking");
  }
  return {};
}

Result<Verification> GpuExecutor::Inspector::result() {
  std::vector<CheckResult> results(items_.size());
  if (!results.empty())
    FORESHARD_TRY(fault_of(cudaMemcpy(results.data(), results_.data(),
                                      results.size() * sizeof(CheckResult), cudaMemcpyDeviceToHost),
                           "reading the checks"));
  Verification verification{.operations = operations_};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Item& item = items_[i];
    verification.elements += item.count;
    if (results[i].wrong == 0 || verification.faults.size() >= kMostFaults) continue;
    verification.faults.push_back(
        describe(plan_, item.instance) + " #" +
        std::to_string(plan_.operations[item.instance].ordinal) + " on rank " +
        std::to_string(plan_.rank) + ": element " +
        std::to_string(item.first + static_cast<std::int64_t>(results[i].first)) + " is " +
        number(results[i].got) + ", not " + number(results[i].want) + " (" +
        std::to_string(results[i].wrong) + " of " + std::to_string(item.count) + " are wrong)");
  }
  return verification;
}

}  // namespace foreshard::replay::gpu
