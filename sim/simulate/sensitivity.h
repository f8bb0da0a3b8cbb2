/// \file
/// The effect of each speed of a step's devices, links and hosts: how much shorter the step gets
/// when that speed grows.
///
///     elasticity = d ln(step) / d ln(speed)     exact (sim/engine/slopes.h); -0.3: 1 % faster
///                                               takes 0.3 % off the step
///     step at +10 %                             simulated again, with this one speed 1.1 times
///
/// Elasticities sum to -1: if everything is twice as fast, the step takes half as long. A speed
/// that does not matter on the critical path has no effect.
///
/// Not modelled: changes of everything that a ScalableStep keeps as it is, such as the algorithms.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/engine/slopes.h"
#include "sim/engine/workload.h"
#include "sim/simulate/simulate.h"

namespace foreshard::sim {

// A step as a function of the speeds of the hardware: the workload that `simulate` makes of a
// Program, with each of its numbers as a function of factors, one per speed.
//
//     kernel  = max(arithmetic / f, bytes / f_memory) + floor / f_floor      (operator_time.h)
//     flow    = the bandwidth of each link x f of its kind, of which the form uses the part that
//               its slowest kind of link then leaves; the copy rate of channels x f
//     delay   = latency / f_latency + start-up at the rate that is then left  (collective.h)
//     host    = launches and other work / f_host
//
// With all factors 1 this is the simulated step. Every part of a time is divided by some factor,
// so a factor of 2 on all of them halves the step exactly.
//
// Not modelled (kept as they are): the choice of algorithm, protocol and tile, which ranks are
// equivalent, and which links can never limit a flow.

/// Speeds that can grow.
enum class SpeedKind : std::uint8_t {
  kProducts,   ///< Arithmetic of matrix products.
  kAttention,  ///< Arithmetic of fused attention.
  kPasses,     ///< Arithmetic of memory-bound kernels.
  kMemory,     ///< Bandwidth of a device's memory.
  kFloor,      ///< The fixed time of every kernel.
  kHost,       ///< Launches and other work of host threads.
  kNvlink,     ///< Bandwidth of links, by kind.
  kPcie,
  kSocket,
  kNetwork,
  kHostMemory,
  /// Copy rate of the communication library's channels, and the rate of a root complex.
  kChannels,
  kLatency,  ///< Latency of communication: everything that does not depend on bytes.
};
inline constexpr std::size_t kSpeedKinds = 13;
/// Name in files: "network_bandwidth".
std::string_view key_of(SpeedKind kind);
/// Name for people: "network bandwidth".
std::string_view name_of(SpeedKind kind);

struct Speed {
  SpeedKind kind = SpeedKind::kProducts;
  std::string device;  ///< Name of the device type; empty for speeds that belong to no device.
};

class ScalableStep {
 public:
  /// \return The errors of `simulate`; kUnsupported for stepwise collectives and engines other than
  ///     fluid.
  static Result<ScalableStep> of(const ClusterView& cluster, const program::Program& program,
                                 const comm::Parameters& communication,
                                 const SimulateOptions& options);

  /// Sorted by kind, then by device type. Speeds that no number depends on are left out.
  std::span<const Speed> speeds() const { return speeds_; }
  /// The workload with these factors, one per speed. \pre Each factor is > 0.
  engine::Workload at(std::span<const double> factors) const;
  /// Derivatives of the workload's numbers by the logarithms of the factors, at factors of 1.
  engine::Slopes slopes() const;

 private:
  friend class ScalableStepMaker;

  static constexpr std::int32_t kConstant = engine::Slopes::kConstant;

  /// An upper limit of a rate: rate x factor of the speed.
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
    double fixed = 0;  ///< Latency, and the request before a long message.
    double fill = 0;   ///< Bytes that pass before a pipeline is full.
    double bytes = 0;  ///< Bytes of the operation.
    double open = 0;   ///< Bytes that the open channels would carry during the start-up.
    /// Whether the rate of one channel is independent of the rate of the links.
    bool own_channels = false;
    std::vector<Limit> limits;  ///< Limits of the rate on idle links.
    std::int32_t latency_speed = kConstant;
    std::int32_t channel_speed = kConstant;
  };
  struct HostTime {
    double time = 0;
  };
  /// The part of its links that a form uses: the rate with full bandwidth of every kind of link,
  /// and the rate with the efficiency of each kind (FlatCollective::bandwidth_fraction is their
  /// ratio).
  struct Fraction {
    std::vector<Limit> whole;  ///< Limits of the rate on idle links with their full bandwidth.
    std::vector<Limit> used;   ///< The same limits with the efficiency of each kind.
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
  /// The fraction with all factors 1, divided by the fraction with these factors.
  double less_used(const Fraction& fraction, std::span<const double> factors) const;
  /// Adds `amount` x the derivative of the logarithm of less_used.
  void add_less_used(const Fraction& fraction, double amount, std::vector<double>& row) const;

  std::vector<Speed> speeds_;
  std::int32_t host_speed_ = kConstant;
  engine::Workload workload_;
  std::vector<Number> numbers_;
  std::vector<std::int32_t> latency_;  ///< activity -> its number, or kConstant.
  std::vector<std::int32_t> work_;
  std::vector<std::int32_t> link_speed_;           ///< resource -> its speed, or kConstant.
  std::vector<std::vector<Limit>> limits_of_cap_;  ///< One entry per shape; empty: constant.
  std::vector<Fraction> fraction_of_cap_;          ///< One entry per shape.
};

struct Sensitivity {
  Speed speed;
  double elasticity = 0;
  Seconds step_at_more;  ///< Step with this speed multiplied by `kMore`.
};

struct Sensitivities {
  static constexpr double kMore = 1.1;

  Seconds step;
  std::vector<Sensitivity> of;  ///< Largest effect first; ties in the order of speeds.
};

/// \pre Nothing disturbs the step.
/// \return The errors of ScalableStep::of and the engine.
Result<Sensitivities> sensitivities_of(const ClusterView& cluster, const program::Program& program,
                                       const comm::Parameters& communication,
                                       const SimulateOptions& options);

}  // namespace foreshard::sim
