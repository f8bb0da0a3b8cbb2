/// \file
/// Fits the communication library's numbers to tables of measured collectives.
///
/// One set of numbers per generation of GPUs, and one of each network's transport. All generations
/// are drawn towards a common set, and that towards the start (NCCL's own tables), so that a number
/// about which the data of a generation say nothing stays at that of the others: minimised is
///
///     sum over rows    w(machine) loss(log(predicted / measured) / 0.1)
///   + sum over numbers (log(of generation) - log(common))^2 / 0.5^2          (but see below)
///   + sum over numbers (log(common) - log(start))^2 / spread^2
///   + sum over numbers of transports (log(number) - log(start))^2
///
/// where w = sqrt(100 / rows of the machine), since measurements of one machine share what is
/// peculiar to it, `spread` stands in slots.cc, and `predicted`, the least of the times of those
/// forms that the start's tuner considers (choose.h), is first a smooth least (a power mean), so
/// that forms that are not the fastest at the start count; with Cauchy's loss. A generation's
/// start-up times of LL inside a node, which are its launch and its polling and nothing else,
/// differ from the common ones by a factor that they share (0.5) and by 0.25 each. What a channel
/// of an all-to-all's Simple moves inside a node is what the loads and stores of one multiprocessor
/// do, so a generation's rate is expected at the common one times its clock over 2 GHz, which is
/// what GPUs since Hopper run at. Solved by Levenberg and Marquardt's method (Ceres), on numbers
/// within bounds. Nothing belongs to one machine or row. The same input gives the same numbers.
///
/// Source: Agarwal, Mierle et al., Ceres Solver 2.1; Barron, "A general and adaptive robust loss
/// function", CVPR 2019 (Cauchy's); Gelman and Hill, "Data analysis using regression and
/// multilevel/hierarchical models", 2006 (partial pooling).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/comm/flat_form.h"
#include "validate/calibrate/slots.h"
#include "validate/tables/collective_rows.h"
#include "validate/tables/outcome.h"

namespace foreshard::calibrate {

/// What one group of rows needs for a prediction: the patterns of all algorithms.
struct PreparedGroup {
  struct Candidate {
    const comm::Algorithm* algorithm = nullptr;
    comm::Pattern pattern;
    comm::Demand demand;
  };
  accuracy::MeasuredGroup measured;
  std::string machine, operation;
  std::string generation;          ///< Of the devices; the name of their efficiency file.
  double clock = 0;                ///< Of the devices, in Hz: clock_of.
  comm::GroupTransport transport;  ///< Of the slowest adapters; "infiniband" inside a node.
  std::vector<Candidate> candidates;
  struct Row {
    accuracy::CollectiveRow row;
    double measured = 0;  ///< Seconds.
    double overhead = 0;  ///< Of it, the benchmark's own.
  };
  std::vector<Row> rows;
};

struct Input {
  std::vector<std::shared_ptr<PreparedGroup>> groups;
  std::int64_t rows = 0;
  std::int64_t excluded = 0;
};
/// \param tables   CSV, or what nccl-tests printed.
/// \param start    the library that the fit starts from: its numbers of transports.
/// \param machine  what all of them were measured on; empty: usual machines of the rows' devices.
/// \param operation  of what nccl-tests printed, where neither the text nor its name tells it.
/// \return as the tables' readers; kInvalidInput if nothing is left to fit to.
Result<Input> read_input(const std::vector<std::filesystem::path>& tables,
                         const std::vector<std::filesystem::path>& catalogue,
                         const comm::Parameters& start,
                         const std::optional<ClusterConfig>& machine = {},
                         std::string_view operation = {});

/// The machines of `input`, ascending.
std::vector<std::string> machines_of(const Input& input);
/// The two halves, by rule: machines are dealt out, those with the most rows first, each to the
/// side that has fewer machines of its generation and transport, then fewer of its generation, then
/// fewer rows. So every generation and every interconnect that two machines have is on both sides,
/// and the generations of one machine are spread. True: second half.
std::map<std::string, bool> halves_of(const Input& input);
/// The groups of these machines only.
Input only(const Input& input, const std::vector<std::string>& machines);

struct FittedNumber {
  std::string generation;  ///< "" of the common set.
  std::string name;
  double value = 0;
  double low = 0;  ///< 95 % interval, from the curvature at the end.
  double high = 0;
};
struct Fit {
  comm::Parameters parameters;
  std::vector<FittedNumber> numbers;
  int iterations = 0;
  double cost_before = 0;
  double cost_after = 0;
};
Result<Fit> fit(const Input& input, const comm::Parameters& start);

/// Each row of `input` beside its prediction.
Result<std::vector<accuracy::Outcome>> predictions(const Input& input,
                                                   const comm::Parameters& parameters);

}  // namespace foreshard::calibrate
