#include "validate/replay/host/collective.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"

#include "validate/replay/number.h"

namespace foreshard::replay::host {
namespace {

using program::CollectiveKind;

std::size_t size_in_bytes(DType dtype) {
  return static_cast<std::size_t>(size_of(dtype).in_base());
}

// Part `index` of [0, whole) divided into `parts` nearly equal parts.
struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
};
Part part_of(std::size_t whole, std::size_t index, std::size_t parts) {
  const std::size_t each = whole / parts;
  const std::size_t larger = whole % parts;  // the first `larger` parts have one more
  const auto begin = index * each + std::min(index, larger);
  return {.begin = begin, .end = begin + each + (index < larger ? 1 : 0)};
}

// Whether something happened, or the error of the wire.
using Step = Result<bool>;

class Ring final : public Collective {
 public:
  Ring(const CollectiveSpec& spec, Wire& wire, std::span<const std::byte> send,
       std::span<std::byte> receive, std::span<std::byte> stage)
      : spec_(spec),
        wire_(wire),
        input_(spec.kind == CollectiveKind::kReduceScatter ? send : receive),
        output_(receive),
        stage_(stage),
        element_(size_in_bytes(spec.dtype)),
        members_(static_cast<std::int64_t>(spec.members.size())) {
    if (spec.kind == CollectiveKind::kBroadcast)
      list_chain();
    else
      list_ring();
  }

  Result<Progress> advance() override {
    bool moved = false;
    for (const auto step : {&Ring::complete_receives, &Ring::complete_sends, &Ring::post_receives,
                            &Ring::post_sends}) {
      const Step made = (this->*step)();
      if (!made) return made.error();
      moved = moved || *made;
    }
    if (received_ == receives_.size() && sends_done_ == sends_.size()) return Progress::kDone;
    return moved ? Progress::kMoved : Progress::kStalled;
  }

 private:
  static constexpr std::size_t kSlots = 2 * kLanes;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  enum class Into : std::uint8_t {
    kSum,     // a scratch slot: received + own, to be forwarded
    kResult,  // the result: received + own, the segment's final sum
    kPlace,   // its place in the output buffer
  };
  struct Incoming {
    Part bytes;  // byte range in the buffer
    Into into = Into::kPlace;
    std::size_t forward = kNone;  // index of the send that forwards it
    Wire::Ticket ticket = 0;
  };
  struct Outgoing {
    Part bytes;
    std::size_t after = kNone;  // index of the receive that it forwards
    Wire::Ticket ticket = 0;
  };

  std::size_t segment_at(std::int64_t index) const {
    return static_cast<std::size_t>(((index % members_) + members_) % members_);
  }
  Part chunk(std::size_t segment, std::size_t index) const {
    const Part whole = part_of(input_.size() / element_, segment, static_cast<std::size_t>(parts_));
    const Part piece = part_of(whole.end - whole.begin, index, chunks_);
    return {.begin = (whole.begin + piece.begin) * element_,
            .end = (whole.begin + piece.end) * element_};
  }
  void cut(std::int64_t parts) {
    parts_ = parts;
    const Part largest = part_of(input_.size() / element_, 0, static_cast<std::size_t>(parts));
    const std::size_t bytes = (largest.end - largest.begin) * element_;
    chunks_ = std::max<std::size_t>(1, (bytes + kChunk - 1) / kChunk);
  }

  void list_ring() {
    cut(members_);
    const bool reduces = spec_.kind != CollectiveKind::kAllGather;
    const bool gathers = spec_.kind != CollectiveKind::kReduceScatter;
    const std::int64_t reducing = reduces ? members_ - 1 : 0;
    const std::int64_t steps = reducing + (gathers ? members_ - 1 : 0);
    for (std::size_t first = 0; first < chunks_; first += kLanes) {
      const std::size_t lanes = std::min(kLanes, chunks_ - first);
      for (std::int64_t step = 0; step < steps; ++step) {
        const bool sums = step < reducing;
        const std::int64_t sent = sums ? spec_.me - step - 1 : spec_.me - (step - reducing);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          std::size_t after = kNone;
          if (step > 0) {
            after = receives_.size() - lanes;
            receives_[after].forward = sends_.size();
          }
          sends_.push_back({.bytes = chunk(segment_at(sent), first + lane), .after = after});
          const Into into = !sums ? Into::kPlace : step + 1 < reducing ? Into::kSum : Into::kResult;
          receives_.push_back({.bytes = chunk(segment_at(sent - 1), first + lane), .into = into});
        }
      }
    }
    next_ = spec_.members[segment_at(spec_.me + 1)];
    previous_ = spec_.members[segment_at(spec_.me - 1)];
  }

  void list_chain() {
    cut(1);
    const auto place = static_cast<std::int64_t>(segment_at(spec_.me - spec_.root));
    for (std::size_t i = 0; i < chunks_; ++i) {
      if (place > 0) receives_.push_back({.bytes = chunk(0, i)});
      if (place + 1 == members_) continue;
      if (place > 0) receives_.back().forward = sends_.size();
      sends_.push_back({.bytes = chunk(0, i), .after = place > 0 ? i : kNone});
    }
    next_ = spec_.members[segment_at(spec_.me + 1)];
    previous_ = spec_.members[segment_at(spec_.me - 1)];
  }

  std::span<std::byte> slot(std::size_t receive) const {
    const Part bytes = receives_[receive].bytes;
    return stage_.subspan((receive % kSlots) * kChunk, bytes.end - bytes.begin);
  }
  std::span<std::byte> target(std::size_t receive) const {
    const Incoming& of = receives_[receive];
    if (of.into != Into::kPlace) return slot(receive);
    return output_.subspan(of.bytes.begin, of.bytes.end - of.bytes.begin);
  }
  // Where the own segment's sum is stored. The output of reduce_scatter consists of that segment.
  std::span<std::byte> result(const Part& bytes) const {
    const std::size_t base = spec_.kind == CollectiveKind::kReduceScatter
                                 ? chunk(static_cast<std::size_t>(spec_.me), 0).begin
                                 : 0;
    return output_.subspan(bytes.begin - base, bytes.end - bytes.begin);
  }
  std::span<const std::byte> source(const Outgoing& of) const {
    if (of.after != kNone && receives_[of.after].into == Into::kSum) return slot(of.after);
    const auto from = of.after == kNone ? input_ : std::span<const std::byte>(output_);
    return from.subspan(of.bytes.begin, of.bytes.end - of.bytes.begin);
  }
  // Whether the slot of a receive may be reused.
  bool released(std::size_t receive) const {
    const std::size_t forward = receives_[receive].forward;
    return receive < received_ && (forward == kNone || forward < sends_done_);
  }

  Step post_receives() {
    bool moved = false;
    while (posted_ < receives_.size() && (posted_ < kSlots || released(posted_ - kSlots))) {
      FORESHARD_ASSIGN(const auto ticket, wire_.receive(previous_, spec_.channel, target(posted_)));
      receives_[posted_++].ticket = ticket;
      moved = true;
    }
    return moved;
  }
  Step post_sends() {
    bool moved = false;
    while (sent_ < sends_.size() && sent_ - sends_done_ < kSlots &&
           (sends_[sent_].after == kNone || sends_[sent_].after < received_)) {
      FORESHARD_ASSIGN(const auto ticket, wire_.send(next_, spec_.channel, source(sends_[sent_])));
      sends_[sent_++].ticket = ticket;
      moved = true;
    }
    return moved;
  }
  Step complete_receives() {
    bool moved = false;
    while (received_ < posted_) {
      const auto done = wire_.done(receives_[received_].ticket);
      if (!done) return done.error();
      if (!*done) break;
      const Incoming& of = receives_[received_];
      if (of.into != Into::kPlace) {
        const auto own = input_.subspan(of.bytes.begin, of.bytes.end - of.bytes.begin);
        add(spec_.dtype, own, slot(received_),
            of.into == Into::kSum ? slot(received_) : result(of.bytes));
      }
      ++received_;
      moved = true;
    }
    return moved;
  }
  Step complete_sends() {
    bool moved = false;
    while (sends_done_ < sent_) {
      const auto done = wire_.done(sends_[sends_done_].ticket);
      if (!done) return done.error();
      if (!*done) break;
      ++sends_done_;
      moved = true;
    }
    return moved;
  }

  const CollectiveSpec spec_;
  Wire& wire_;
  std::span<const std::byte> input_;
  std::span<std::byte> output_;
  std::span<std::byte> stage_;
  std::size_t element_;
  std::int64_t members_;
  std::int64_t parts_ = 1;
  std::size_t chunks_ = 1;
  std::int32_t next_ = 0;
  std::int32_t previous_ = 0;
  std::vector<Incoming> receives_;
  std::vector<Outgoing> sends_;
  // Numbers of posted receives, of receives that are done and added, of posted sends, and of sends
  // that are done, each counted from the front of its list.
  std::size_t posted_ = 0;
  std::size_t received_ = 0;
  std::size_t sent_ = 0;
  std::size_t sends_done_ = 0;
};

class Messages final : public Collective {
 public:
  Messages(const CollectiveSpec& spec, Wire& wire) : spec_(spec), wire_(wire) {}

  void send(std::int32_t place, std::span<const std::byte> data) {
    for (std::size_t at = 0; at < data.size(); at += Wire::kMostBytes)
      keep(wire_.send(rank(place), spec_.channel,
                      data.subspan(at, std::min(Wire::kMostBytes, data.size() - at))));
  }
  void receive(std::int32_t place, std::span<std::byte> data) {
    for (std::size_t at = 0; at < data.size(); at += Wire::kMostBytes)
      keep(wire_.receive(rank(place), spec_.channel,
                         data.subspan(at, std::min(Wire::kMostBytes, data.size() - at))));
  }

  Result<Progress> advance() override {
    FORESHARD_TRY(fault_);
    const std::size_t before = open_.size();
    Status fault;
    std::erase_if(open_, [&](Wire::Ticket ticket) {
      if (!fault.ok()) return false;
      const auto done = wire_.done(ticket);
      if (!done) fault = done.error();
      return done && *done;
    });
    FORESHARD_TRY(fault);
    if (open_.empty()) return Progress::kDone;
    return open_.size() < before ? Progress::kMoved : Progress::kStalled;
  }

 private:
  std::int32_t rank(std::int32_t place) const {
    return spec_.members[static_cast<std::size_t>(place)];
  }
  void keep(const Result<Wire::Ticket>& ticket) {
    if (ticket)
      open_.push_back(*ticket);
    else if (fault_.ok())
      fault_ = ticket.error();
  }

  const CollectiveSpec spec_;
  Wire& wire_;
  std::vector<Wire::Ticket> open_;
  Status fault_;
};

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  FORESHARD_CHECK(from.size() == to.size());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

void start_all_to_all(const CollectiveSpec& spec, std::span<const std::byte> send,
                      std::span<std::byte> receive, Messages& messages) {
  const auto members = static_cast<std::int32_t>(spec.members.size());
  const std::size_t shard = send.size() / spec.members.size();
  const auto at = [&](std::int32_t place) { return static_cast<std::size_t>(place) * shard; };
  for (std::int32_t step = 1; step < members; ++step) {
    const std::int32_t from = (spec.me - step + members) % members;
    messages.receive(from, receive.subspan(at(from), shard));
  }
  for (std::int32_t step = 1; step < members; ++step) {
    const std::int32_t to = (spec.me + step) % members;
    messages.send(to, send.subspan(at(to), shard));
  }
  copy(send.subspan(at(spec.me), shard), receive.subspan(at(spec.me), shard));
}

void start_exchange(const CollectiveSpec& spec, std::span<const std::byte> send,
                    std::span<std::byte> receive, Messages& messages) {
  const std::size_t element = size_in_bytes(spec.dtype);
  const auto part = [&](const Message& of) {
    return Part{.begin = static_cast<std::size_t>(of.offset) * element,
                .end = static_cast<std::size_t>(of.offset + of.elements) * element};
  };
  std::vector<Part> to_myself;
  for (const Message& of : spec.messages) {
    const Part bytes = part(of);
    const std::size_t size = bytes.end - bytes.begin;
    if (of.outgoing && of.peer == spec.me)
      to_myself.push_back(bytes);
    else if (of.outgoing)
      messages.send(of.peer, send.subspan(bytes.begin, size));
    else if (of.peer != spec.me)
      messages.receive(of.peer, receive.subspan(bytes.begin, size));
  }
  std::size_t next = 0;
  for (const Message& of : spec.messages)
    if (!of.outgoing && of.peer == spec.me) {
      const Part from = to_myself[next++];
      const Part to = part(of);
      copy(send.subspan(from.begin, from.end - from.begin),
           receive.subspan(to.begin, to.end - to.begin));
    }
}

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    return a + b;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    T out;
    store(to_float(a) + to_float(b), out);
    return out;
  }
}

bool is_ring(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kBroadcast;
}

}  // namespace

void add(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
         std::span<std::byte> sum) {
  FORESHARD_CHECK(a.size() == sum.size() && b.size() == sum.size());
  with_storage(dtype, [&](auto storage) {
    using T = decltype(storage);
    const auto* x = reinterpret_cast<const T*>(a.data());
    const auto* y = reinterpret_cast<const T*>(b.data());
    auto* z = reinterpret_cast<T*>(sum.data());
    const std::size_t elements = sum.size() / sizeof(T);
    for (std::size_t i = 0; i < elements; ++i) z[i] = sum_of(x[i], y[i]);
  });
}

std::size_t stage_bytes(const CollectiveSpec& spec) {
  const bool adds =
      spec.kind == CollectiveKind::kAllReduce || spec.kind == CollectiveKind::kReduceScatter;
  return adds ? 2 * kLanes * kChunk : 0;
}

std::unique_ptr<Collective> start_collective(const CollectiveSpec& spec, Wire& wire,
                                             std::span<const std::byte> send,
                                             std::span<std::byte> receive,
                                             std::span<std::byte> stage) {
  FORESHARD_CHECK(stage.size() >= stage_bytes(spec));
  if (is_ring(spec.kind)) {
    if (spec.members.size() == 1 && spec.kind == CollectiveKind::kReduceScatter)
      copy(send, receive);
    return std::make_unique<Ring>(spec, wire, send, receive, stage);
  }
  auto messages = std::make_unique<Messages>(spec, wire);
  switch (spec.kind) {
    case CollectiveKind::kAllToAll:
      start_all_to_all(spec, send, receive, *messages);
      break;
    case CollectiveKind::kSend:
      messages->send(spec.peer, send);
      break;
    case CollectiveKind::kReceive:
      messages->receive(spec.peer, receive);
      break;
    default:
      start_exchange(spec, send, receive, *messages);
  }
  return messages;
}

}  // namespace foreshard::replay::host
