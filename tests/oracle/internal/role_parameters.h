/// \file
/// The parameters of one role on its ranks, with gradients and optimizer state: private to step.cc.
///
/// A buffer that is not there when an action reads it is no number (NaN), and of buffers of which
/// two may be there at a time a third takes the place of the oldest.
#pragma once

#include <array>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/oracle/graph.h"
#include "tests/oracle/step.h"

#include "strategies/graph/mesh_axes.h"

namespace foreshard::execute {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// One array for each position of the role's mesh.
using Arrays = Shards<double>;
void add_to(Arrays& sum, const Arrays& values);

struct Parameter {
  std::string name;
  Shape shape;
  Attribute whole{};  ///< As passes read it.
  Attribute own{};    ///< As ranks keep it: cut over the data-parallel ranks, or not.
  std::vector<Axis> also_partial{};  ///< Its gradient is partial over these, besides copy_axes().
  Parameters of = Parameters::kAllElse;
  bool tied = false;
  bool frozen = false;
  Arrays kept{};  ///< As `own`; so are the next three.
  Arrays first_moment{};
  Arrays second_moment{};
  Arrays gradients{};  ///< Reduced.
  Arrays summands{};   ///< Gradients that are not reduced yet, as `whole`.
  Arrays gathered{};   ///< For longer than a pass, as `whole`; empty: is not there.
};

class RoleParameters {
 public:
  RoleParameters(const plan::StepPlan& plan, const plan::Role& role, const StepOptions& options,
                 ProcessMesh mesh);

  /// Adds what a unit reads: `also_partial` by parameter. Of a tie the table is the parameter
  /// "embedding.weight" of units, and "logits.weight" of a tied head.
  void add(std::int32_t unit, const Graph& graph,
           const std::map<TensorId, std::vector<Axis>>& also_partial);

  /// The parameters of the unit for its graph, as they are now.
  Tensors read(std::int32_t unit, const Graph& graph) const;
  /// Adds what a backward pass made to the summands. `gradient_of`: by tensor of the parameter; of
  /// others the pass has made none.
  void accumulate(std::int32_t unit, const std::map<TensorId, TensorId>& gradient_of,
                  const Tensors& tensors);
  /// Buffers that end with a pass.
  void end(const plan::Action& pass, plan::ActionId id);

  void gather(const plan::Action& action);
  void reduce(const plan::Action& action);
  /// Adds up gradients of which ranks along `axes` saw parts.
  void reduce_copies(const std::vector<Axis>& axes);
  /// What nobody reduced is taken as it is.
  void settle();
  /// Of the gradients, each once. `counts_tied`: this role answers for the tied table.
  double squared_norm(bool counts_tied) const;
  void update(double clip_factor, std::string_view rule);

  Parameter& tied();
  const ProcessMesh& mesh() const { return mesh_; }
  /// Of the step: the parameters as the next one finds them, gradients and moments.
  std::vector<Held> held() const;

 private:
  struct Use {  // of a parameter by a unit
    TensorId tensor{};
    std::size_t parameter = 0;
    bool transposed = false;  // the graph wants the tied table the other way round
    bool first = true;        // no unit before has it: it is reduced with this one
  };
  using ByParameter = std::map<std::size_t, Arrays>;
  using ByBucket = std::map<std::int32_t, ByParameter>;

  const StateSharding& states() const { return plan_.states; }
  std::vector<std::int32_t> units_of(std::int32_t bucket) const;
  std::set<std::size_t> parameters_in(std::int32_t bucket, bool reduced) const;
  Attribute cut(Attribute whole, const Shape& shape, Parameters of) const;
  // Axes over which ranks hold copies of the parameter, and those over which ZeRO cuts it.
  std::vector<Axis> copies_of(const Parameter& parameter) const;
  std::vector<Axis> shards_of(const Parameter& parameter) const;
  bool is_cut(const Parameter& parameter) const;
  void fill(Parameter& parameter) const;
  Arrays constant(const Parameter& parameter, double value) const;
  Arrays turned(const Parameter& table, const Arrays& values, bool to_graph) const;
  void add_up(Parameter& parameter, const Arrays& summands, std::vector<Axis> over) const;
  ByParameter take_summands(std::int32_t bucket);

  const plan::StepPlan& plan_;
  const StepOptions& options_;
  ProcessMesh mesh_;
  std::vector<Parameter> parameters_;
  std::map<std::int32_t, std::vector<Use>> uses_;              // by unit
  std::map<plan::ActionId, std::vector<std::int32_t>> ended_;  // buckets of gradients by last pass
  std::deque<std::pair<std::int32_t, ByBucket>> gathered_;     // of units, whole for a pass
  // Of the last two passes that ended some, by bucket: until they are reduced.
  std::deque<ByBucket> ended_gradients_;
};

}  // namespace foreshard::execute
