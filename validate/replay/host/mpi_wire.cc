#include "validate/replay/host/mpi_wire.h"

#include <algorithm>
#include <chrono>
#include <mpi.h>
#include <string_view>

#include "base/check.h"

namespace foreshard::replay::host {
namespace {

constexpr double kMargin = 300e-6;  // seconds; time to tell all processes of a host

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Status fault_of(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return {};
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  text.resize(static_cast<std::size_t>(length));
  return Error{Error::Code::kIo, std::string(what) + ": " + text};
}

class Mpi final : public MpiWire {
 public:
  explicit Mpi(bool started_here) : started_here_(started_here) {}
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  ~Mpi() override {
    // With messages under way or a lost peer, MPI_Finalize would wait for ever. The launcher ends
    // such a job.
    if (!started_here_ || failed_ || free_.size() != requests_.size()) return;
    if (node_ != MPI_COMM_NULL) MPI_Comm_free(&node_);
    if (all_ != MPI_COMM_NULL) MPI_Comm_free(&all_);
    MPI_Finalize();
  }

  Status join(std::int32_t rank, std::int64_t ranks) override {
    int processes = 0;
    FORESHARD_TRY(kept(MPI_Comm_size(MPI_COMM_WORLD, &processes), "MPI_Comm_size"));
    if (processes != ranks)
      return Error{
          Error::Code::kInvalidInput,
          "the Program has " + std::to_string(ranks) + " ranks, but MPI started " +
              std::to_string(processes) +
              (processes == 1 ? " process (of its own: this is no MPI launch)" : " processes") +
              "; start it with mpirun -n " + std::to_string(ranks)};
    FORESHARD_TRY(kept(MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &all_), "MPI_Comm_split"));
    MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
    int me = 0;
    FORESHARD_TRY(kept(MPI_Comm_rank(all_, &me), "MPI_Comm_rank"));
    if (me != rank)
      return Error{Error::Code::kInvalidInput, "MPI's processes do not hold the ranks 0 to " +
                                                   std::to_string(ranks - 1) + " once each: rank " +
                                                   std::to_string(rank) + " is number " +
                                                   std::to_string(me) + " of them"};
    FORESHARD_TRY(kept(MPI_Comm_split_type(all_, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node_),
                       "MPI_Comm_split_type"));
    MPI_Comm_set_errhandler(node_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(node_, &local_rank_);
    MPI_Comm_size(node_, &local_ranks_);
    void* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(all_, MPI_TAG_UB, static_cast<void*>(&value), &found);
    if (found != 0) largest_tag_ = *static_cast<int*>(value);
    return {};
  }

  std::int32_t local_rank() const override { return local_rank_; }
  std::int32_t local_ranks() const override { return local_ranks_; }

  Result<std::vector<double>> gather_on_host(double mine, Watch& watch) override {
    std::vector<double> all(static_cast<std::size_t>(local_ranks_));
    MPI_Request request = MPI_REQUEST_NULL;
    FORESHARD_TRY(
        kept(MPI_Iallgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, node_, &request),
             "MPI_Iallgather"));
    FORESHARD_TRY(wait(request, watch, "MPI_Iallgather"));
    return all;
  }

  Status barrier(Watch& watch) override {
    MPI_Request request = MPI_REQUEST_NULL;
    FORESHARD_TRY(kept(MPI_Ibarrier(all_, &request), "MPI_Ibarrier"));
    return wait(request, watch, "MPI_Ibarrier");
  }

  Result<double> common_beginning(Watch& watch) override {
    FORESHARD_ASSIGN(const auto all, gather_on_host(now(), watch));
    return *std::ranges::max_element(all) + kMargin;
  }

  Result<Ticket> send(std::int32_t to, std::int64_t channel,
                      std::span<const std::byte> data) override {
    return post(channel, data.size(), "MPI_Isend", [&](int size, int tag, MPI_Request* request) {
      return MPI_Isend(data.data(), size, MPI_BYTE, to, tag, all_, request);
    });
  }
  Result<Ticket> receive(std::int32_t from, std::int64_t channel,
                         std::span<std::byte> data) override {
    return post(channel, data.size(), "MPI_Irecv", [&](int size, int tag, MPI_Request* request) {
      return MPI_Irecv(data.data(), size, MPI_BYTE, from, tag, all_, request);
    });
  }
  Result<bool> done(Ticket ticket) override {
    int flag = 0;
    const int code =
        MPI_Test(&requests_[static_cast<std::size_t>(ticket)], &flag, MPI_STATUS_IGNORE);
    FORESHARD_TRY(kept(code, "MPI_Test"));
    if (flag != 0) free_.push_back(ticket);
    return flag != 0;
  }

  std::string version() const override {
    std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    text.resize(static_cast<std::size_t>(length));
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }

 private:
  Status kept(int code, std::string_view what) {
    auto fault = fault_of(code, what);
    failed_ = failed_ || !fault.ok();
    return fault;
  }

  template <class Post>
  Result<Ticket> post(std::int64_t channel, std::size_t bytes, std::string_view what, Post call) {
    FORESHARD_CHECK(bytes <= kMostBytes);
    if (channel > largest_tag_)
      return Error{Error::Code::kUnsupported, "communicator " + std::to_string(channel) +
                                                  ": this MPI has tags up to " +
                                                  std::to_string(largest_tag_)};
    if (free_.empty()) {
      free_.push_back(static_cast<Ticket>(requests_.size()));
      requests_.push_back(MPI_REQUEST_NULL);
    }
    const Ticket ticket = free_.back();
    const int code = call(static_cast<int>(bytes), static_cast<int>(channel),
                          &requests_[static_cast<std::size_t>(ticket)]);
    FORESHARD_TRY(kept(code, what));
    free_.pop_back();
    return ticket;
  }

  Status wait(MPI_Request& request, Watch& watch, std::string_view what) {
    for (int flag = 0; flag == 0;) {
      FORESHARD_TRY(kept(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), what));
      if (watch.stopped()) {
        failed_ = true;
        return Error{Error::Code::kIo, "stopped while waiting for the other ranks"};
      }
    }
    return {};
  }

  bool started_here_;
  bool failed_ = false;
  MPI_Comm all_ = MPI_COMM_NULL;
  MPI_Comm node_ = MPI_COMM_NULL;
  int local_rank_ = 0;
  int local_ranks_ = 1;
  int largest_tag_ = 32767;  // the least that the standard guarantees
  std::vector<MPI_Request> requests_;
  std::vector<Ticket> free_;
};

}  // namespace

Result<std::unique_ptr<MpiWire>> MpiWire::start() {
  int started = 0;
  FORESHARD_TRY(fault_of(MPI_Initialized(&started), "MPI_Initialized"));
  if (started == 0) {
    int provided = 0;
    FORESHARD_TRY(fault_of(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided),
                           "MPI_Init_thread"));
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return std::unique_ptr<MpiWire>(std::make_unique<Mpi>(started == 0));
}

}  // namespace foreshard::replay::host
