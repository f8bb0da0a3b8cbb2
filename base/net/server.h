/// \file
/// The server of one job: a thread in rank 0's process that speaks with the other ranks. What a
/// job's messages mean its Service says. Whoever reaches the port may connect, so a process is a
/// stranger until the service has admitted it:
///
///     stranger -> server   hello             answered by the service's welcome, or refused and why
///     rank     -> server   other messages    as the service says
///
/// Strangers cannot hold a job up. A stranger may send one message of at most kLargestHello bytes,
/// within kPatience. At most kMostStrangers are connected: where more come, the oldest must go,
/// once kHurriedPatience is over; a rank says hello at once. Where the system has no more files or
/// memory for a connection, it waits in the system's queue.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/net/message.h"
#include "base/net/socket.h"
#include "base/result.h"
#include "base/units.h"

namespace foreshard::net {

inline constexpr std::int64_t kMostStrangers = 256;
inline constexpr auto kPatience = std::chrono::seconds(10);
inline constexpr auto kHurriedPatience = std::chrono::milliseconds(200);

class Server {
 public:
  /// Names a connection. A peer has one number for its lifetime.
  using Peer = std::uint64_t;

  /// What the job's messages mean. The server's thread alone calls it.
  class Service {
   public:
    virtual ~Service() = default;
    /// \return the welcome for a peer that is a rank of the job, which begins with "welcome"; or
    ///     kInvalidInput with the reason why it is none, which the peer is told.
    virtual Result<Message> admit(Peer peer, const Message& hello) = 0;
    /// Obeys a message of an admitted peer. \return false where it is not valid: the peer is lost.
    virtual bool obey(Server& server, Peer peer, Message message) = 0;
    /// An admitted peer is gone without Server::close.
    virtual void lost(Server& server, Peer peer) = 0;
    /// Called between messages. \return whether to call it again soon, without any message.
    virtual bool glance(Server&) { return false; }
    /// Whether all ranks have come: the server's end does not wait for late ones.
    virtual bool all_came() const { return true; }
    /// Called when the server ends, before it closes the connections that are left.
    virtual void end() {}
  };

  struct Options {
    std::string address{};   ///< Where it listens: see listen_on.
    std::uint16_t port = 0;  ///< 0: any that is free.
    /// Tells others the port, before anybody is served.
    std::function<Status(std::uint16_t port)> publish{};
    std::size_t largest = kLargestMessage;  ///< Larger messages of ranks are refused.
    Seconds farewell{};                     ///< Longest wait for late ranks when the server ends.
    Seconds grace = 10_s;                   ///< Longest wait for present ranks to leave, after it.
  };

  /// \return kIo where it cannot listen, or cannot start its thread; errors of Options::publish.
  static Result<std::unique_ptr<Server>> start(const Options& options,
                                               std::unique_ptr<Service> service);
  /// Serves on for Options::farewell and Options::grace, then closes all connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return listening_.port; }

  // For the service, in the server's thread.

  /// Nothing where the peer is gone.
  void send(Peer peer, const Message& message);
  /// Closes the connection when all is sent.
  void close(Peer peer);

 private:
  struct Connection {
    Descriptor socket{};
    Clock::time_point since{};
    bool admitted = false;
    bool leaving = false;  // Close it once `out` is sent.
    bool closed = false;
    std::string in{};
    std::string out{};
    std::size_t sent = 0;  // Bytes of `out` that were sent.
  };

  Server(const Options& options, std::unique_ptr<Service> service)
      : options_(options), service_(std::move(service)) {}
  void run();
  void turn();
  void accept();
  bool drop_a_stranger();
  void wait_to_accept();
  void read(Peer peer, Connection& connection);
  void understand(Peer peer, Connection& connection);
  bool admit(Peer peer, Connection& connection, const Message& hello);
  void write(Peer peer, Connection& connection);
  void lose(Peer peer, Connection& connection);
  static void drop(Connection& connection);
  std::int64_t count(bool admitted) const;

  const Options options_;
  const std::unique_ptr<Service> service_;
  Listening listening_{};
  Descriptor stop_{};  // An eventfd, written to when the server has to end.
  bool stopping_ = false;
  Clock::time_point accept_again_{};
  Peer next_ = 0;
  std::map<Peer, Connection> connections_;  // In the order in which they came.
  std::thread thread_{};
};

}  // namespace foreshard::net
