/// \file
/// A step as a function of the speeds of what it runs on: the workload that `simulate` makes of a
/// Program, with each of its numbers as a function of factors, one for each speed.
///
///     kernel  = max(arithmetic / f, bytes / f_memory) + floor / f_floor      (operator_time.h)
///     flow    = the bandwidth of each link x f of its kind, of which the form uses the part that
///               its slowest kind of link leaves then; the copy rate of channels x f
///     delay   = latency / f_latency + start-up at the rate that is then left  (collective.h)
///     host    = launches and other work / f_host
///
/// At factors of 1 it is the step that is simulated. Every time falls with some factor and with
/// nothing else, so a factor of 2 on all of them halves the step exactly.
///
/// Not modelled, because they are held: which algorithm, protocol and tile is taken, which ranks
/// are alike, and which links can hold nobody up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "sim/engine/slopes.h"
#include "sim/engine/workload.h"
#include "sim/simulate/simulate.h"

namespace foreshard::sim {

/// What can be faster.
enum class SpeedKind : std::uint8_t {
  kProducts,   ///< Arithmetic of matrix products.
  kAttention,  ///< Of fused attention.
  kPasses,     ///< Of memory-bound kernels.
  kMemory,     ///< Bandwidth of a device's memory.
  kFloor,      ///< The time that any kernel takes.
  kHost,       ///< Launches and other work of host threads.
  kNvlink,     ///< Bandwidth of links, by kind.
  kPcie,
  kSocket,
  kNetwork,
  kHostMemory,
  kChannels,  ///< What the communication library's channels copy, and a root complex lets pass.
  kLatency,   ///< Of communication: all that does not depend on bytes.
};
inline constexpr std::size_t kSpeedKinds = 13;
/// For files: "network_bandwidth".
std::string_view key_of(SpeedKind kind);
/// For people: "network bandwidth".
std::string_view name_of(SpeedKind kind);

struct Speed {
  SpeedKind kind = SpeedKind::kProducts;
  std::string device;  ///< Name of the type; empty for what is not a device's.
};

class ScalableStep {
 public:
  /// \return what `simulate` returns; kUnsupported for messages one by one and another engine than
  ///     fluid.
  static Result<ScalableStep> of(const ClusterView& cluster, const program::Program& program,
                                 const comm::Parameters& communication,
                                 const SimulateOptions& options);

  /// By kind, then by device type. Speeds that no number depends on are left out.
  std::span<const Speed> speeds() const { return speeds_; }
  /// The workload with these factors, one for each speed. \pre each > 0
  engine::Workload at(std::span<const double> factors) const;
  /// Derivatives of its numbers by the logarithms of the factors, where all are 1.
  engine::Slopes slopes() const;

 private:
  friend class ScalableStepMaker;

  static constexpr std::int32_t kConstant = engine::Slopes::kConstant;

  /// A rate that something sets: rate x factor of the speed.
  struct Limit {
    std::int32_t speed;
    double rate;
  };
  struct KernelTime {
    double arithmetic = 0;
    double memory = 0;
    double floor = 0;
    std::int32_t arithmetic_speed = kConstant;
    std::int32_t memory_speed = kConstant;
    std::int32_t floor_speed = kConstant;
  };
  struct Delay {
    double fixed = 0;           ///< Latency, and asking for long messages.
    double fill = 0;            ///< Bytes that pass before a pipeline is full.
    double bytes = 0;           ///< Of the operation ...
    double open = 0;            ///< ... and those that as many open channels would carry meanwhile.
    bool own_channels = false;  ///< The rate of one channel does not follow that of the links.
    std::vector<Limit> limits;  ///< Of the rate on idle links.
    std::int32_t latency_speed = kConstant;
    std::int32_t channel_speed = kConstant;
  };
  struct HostTime {
    double time = 0;
  };
  /// What a form uses of its links: the rate by the link's kind alone, over the rate that the
  /// efficiency of each kind leaves (FlatCollective::bandwidth_fraction).
  struct Fraction {
    std::vector<Limit> whole;  ///< Of the rate on idle links, all of their bandwidth used.
    std::vector<Limit> used;   ///< The same with the efficiency of each kind.
  };
  struct Flow {
    double bytes = 0;
    Fraction fraction;
  };
  /// A time of an activity, or its bytes.
  struct Number {
    enum class Kind : std::uint8_t { kKernel, kDelay, kHost, kFlow } kind = Kind::kKernel;
    KernelTime kernel;
    Delay delay;
    HostTime host;
    Flow flow;
  };

  double value_of(const Number& number, std::span<const double> factors) const;
  std::vector<double> slope_of(const Number& number) const;
  static const Limit* tightest(const std::vector<Limit>& limits, std::span<const double> factors);
  /// By how much larger the fraction is where all factors are 1.
  double less_used(const Fraction& fraction, std::span<const double> factors) const;
  /// Adds `amount` x the derivative of the logarithm of less_used.
  void add_less_used(const Fraction& fraction, double amount, std::vector<double>& row) const;

  std::vector<Speed> speeds_;
  std::int32_t host_speed_ = kConstant;
  engine::Workload workload_;
  std::vector<Number> numbers_;
  std::vector<std::int32_t> latency_;  ///< Per activity: its number, or kConstant.
  std::vector<std::int32_t> work_;
  std::vector<std::int32_t> link_speed_;           ///< Per resource, or kConstant.
  std::vector<std::vector<Limit>> limits_of_cap_;  ///< Per shape; empty: constant.
  std::vector<Fraction> fraction_of_cap_;          ///< Per shape.
};

}  // namespace foreshard::sim
