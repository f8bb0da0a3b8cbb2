/// \file
/// A first study, from what a newcomer can say: a model, a machine, a number of GPUs and a batch.
/// Its strategy is the fastest of a small search.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"

#include "sim/study/expense.h"
#include "strategies/graph/model.h"
#include "topology/cluster_config.h"

namespace foreshard::cli {

/// A first study that is put together answer by answer, in the order of the functions below. Each
/// answer is checked at once and may be given again.
class FirstStudy {
 public:
  /// \param folder  the folder of the file that will hold the study; paths in it start there.
  FirstStudy(const Environment& environment, std::filesystem::path folder)
      : environment_(&environment), folder_(std::move(folder)) {}

  /// A name of the catalogue, a file, YAML in braces, or a model of Hugging Face.
  Status set_model(const std::string& name);
  /// A cluster, a node or a device of the catalogue, a file, or YAML in braces. A node or a device
  /// becomes a cluster of such nodes on one switch.
  Status set_cluster(const std::string& name);
  /// Whole nodes, or a part of one.
  Status set_gpus(const std::string& count);
  /// "512", "512 sequences" or "4M tokens". Tokens are rounded to 2^k or 3 x 2^k sequences for
  /// each GPU, by 20 % at most where there are enough.
  Status set_batch(const std::string& text);
  /// "2T tokens"; empty: the study describes no training.
  Status set_train(const std::string& text);

  /// The GPUs of the cluster, or of one node; twice as many as were given before, if possible.
  std::string usual_gpus() const;
  /// The 4M tokens of Llama 2 (https://arxiv.org/abs/2307.09288, section 2.2).
  static std::string usual_batch() { return "4M tokens"; }

  /// The study as YAML, with a strategy that fits; nothing if none does, and `why` says why.
  /// \param file  the study's file in the remarks of its text.
  /// \return errors of parts that do not go together.
  Result<std::optional<std::string>> written(const std::string& file, std::string& why) const;

 private:
  /// A name or a path as YAML. \param in_file  in the study's file, not in the working directory.
  std::string reference(const std::string& name, bool in_file) const;
  Status can_be_cut() const;  // whether a cluster can have the GPUs that were asked for
  std::string cluster_text(bool in_file) const;
  std::string head(bool in_file) const;
  std::int64_t batch() const;

  const Environment* environment_;
  std::filesystem::path folder_;
  std::string model_name_;
  Model model_;
  std::string machine_;  // the name of a cluster or a node
  bool is_cluster_ = false;
  ClusterConfig cluster_;
  std::int64_t gpus_ = 0;
  study::TrainingLength batch_;
  std::string train_;
};

}  // namespace foreshard::cli
