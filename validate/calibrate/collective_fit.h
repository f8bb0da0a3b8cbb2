/// \file
/// Fits the communication library's numbers to tables of measured collectives.
///
/// There is one set of numbers per GPU generation and one per network transport. Each generation's
/// set is pulled towards a common set, and the common set towards the start values (NCCL's own
/// tables). A number about which a generation's data say nothing therefore takes the common value.
/// The fit minimises
///
///     sum over rows    w(machine) loss(log(predicted / measured) / 0.1)
///   + sum over numbers (log(generation's number) - log(common))^2 / 0.5^2   (exceptions below)
///   + sum over numbers (log(common) - log(start))^2 / spread^2
///   + sum over numbers of transports (log(number) - log(start))^2
///
/// - w = sqrt(100 / rows of the machine), because the measurements of one machine share its
///   peculiarities.
/// - `loss` is Cauchy's; `spread` is listed in slots.cc.
/// - `predicted` is the shortest time among the forms (algorithm and protocol) that the tuner of
///   the start parameters considers (choose.h). The fit begins with a smooth minimum (a power
///   mean), so that forms that are not the fastest at the start count too.
/// - Inside a node, the start-up times of LL consist of kernel launch and polling alone. In one
///   generation they differ from the common values by a shared factor (0.5), and each by 0.25 more.
/// - Inside a node, an all-to-all with the Simple protocol moves per channel what one
///   multiprocessor loads and stores. A generation's rate is therefore expected to be the common
///   rate times the generation's clock over 2 GHz, the clock of GPUs since Hopper.
///
/// The solver is Levenberg-Marquardt (Ceres), with bounds on the numbers. No number belongs to a
/// single machine or row. The same input gives the same numbers.
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

#include "base/page.h"
#include "base/result.h"

#include "strategies/comm/flat_form.h"
#include "validate/calibrate/slots.h"
#include "validate/tables/collective_rows.h"
#include "validate/tables/outcome.h"

namespace foreshard::calibrate {

/// Rows of one setup (machine, operation, ranks), with the communication patterns of all algorithms
/// that can serve them.
struct PreparedGroup {
  struct Candidate {
    const comm::Algorithm* algorithm = nullptr;
    comm::Pattern pattern;
    comm::LinkDemand demand;
  };
  accuracy::MeasuredGroup measured;
  std::string machine, operation;
  std::string generation;  ///< Generation of the devices: the name of their efficiency file.
  double clock = 0;        ///< Clock of the devices' multiprocessors, in Hz (clock_of).
  comm::GroupTransport
      transport;  ///< Transport of the slowest adapters; "infiniband" inside a node.
  std::vector<Candidate> candidates;
  struct Row {
    accuracy::CollectiveRow row;
    double measured = 0;  ///< Seconds.
    double overhead = 0;  ///< Part of `measured` that the benchmark itself adds, seconds.
  };
  std::vector<Row> rows;
};

struct Input {
  std::vector<std::shared_ptr<PreparedGroup>> groups;
  std::int64_t rows = 0;
  std::int64_t excluded = 0;
};
/// \param tables   CSV files or nccl-tests output.
/// \param start    the parameters that the fit starts from; used here for the transports' numbers.
/// \param machine  the machine that all tables were measured on; empty: the usual machines of the
///     rows' devices.
/// \param operation  the operation of nccl-tests output whose text names none; empty: the file's
///     name decides.
/// \return errors of the tables' readers; kInvalidInput if no row is left to fit to.
Result<Input> read_input(const std::vector<std::filesystem::path>& tables,
                         const std::vector<std::filesystem::path>& catalogue,
                         const comm::Parameters& start,
                         const std::optional<ClusterConfig>& machine = {},
                         std::string_view operation = {});

/// Names of the machines of `input`, ascending.
std::vector<std::string> machines_of(const Input& input);
/// Splits the machines into two halves: machine -> whether it is in the second half. Machines are
/// dealt out in order of their rows, most first. Each goes to the half that has fewer machines of
/// its generation and transport, then fewer of its generation, then fewer rows. Every generation
/// and every interconnect that two machines have is thus in both halves, and generations with a
/// single machine are spread over them.
std::map<std::string, bool> halves_of(const Input& input);
/// The part of `input` that was measured on these machines.
Input only(const Input& input, const std::vector<std::string>& machines);

struct FittedNumber {
  std::string generation;  ///< "": the common set.
  std::string name;
  double value = 0;
  double low = 0;  ///< 95 % interval, from the curvature at the minimum.
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

/// The measured and the predicted time of each row of `input`.
Result<std::vector<accuracy::Outcome>> predictions(const Input& input,
                                                   const comm::Parameters& parameters);

/// Content of configs/communication/NAME.yaml.
/// \param header  comment lines at the beginning of the file.
std::string to_yaml(const comm::Parameters& parameters, const std::string& header);

/// Every number with its 95 % interval.
std::string to_text(const Fit& fit, const Paper& paper = {});

}  // namespace foreshard::calibrate
