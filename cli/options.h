/// \file
/// Options that several commands have.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "cli/command.h"
#include "cli/declaration.h"

#include "sim/search/asked.h"
#include "sim/study/study.h"

namespace foreshard::cli {

/// STUDY.yaml, --cluster, --model, --strategy, --import, --megatron, --communication, --measured
/// and --set.
class StudyOptions {
 public:
  void declare(Declaration& declaration);
  /// \param sizes_matter  as in StudyFiles.
  Result<study::LoadedStudy> load(const Environment& environment, bool sizes_matter = true) const;
  /// The same study with `sets` ("KEY=VALUE") behind its own; with another file or catalogue name
  /// in place of STUDY.yaml, unless `other` is empty.
  Result<study::LoadedStudy> load_other(const Environment& environment, const std::string& other,
                                        const std::vector<std::string>& sets,
                                        bool sizes_matter = true) const;
  /// The words that were given, for load() of another run to read the same.
  search::Asked asked() const;
  /// Those words. \return kInvalidInput for options that there are not, and where a part came from
  /// stdin.
  static Result<StudyOptions> of(const search::Asked& asked);
  /// STUDY.yaml, as given; empty if it was not.
  const std::string& study() const { return study_; }
  /// The first option beside STUDY.yaml that was given, for example "--set"; empty if none was.
  std::string beside_study() const;
  /// The same with what stands for STUDY.yaml as --cluster.
  StudyOptions on_cluster() const {
    StudyOptions changed = *this;
    changed.cluster_ = study_;
    changed.study_.clear();
    return changed;
  }

 private:
  /// \pre holds_found(study_).
  Result<study::LoadedStudy> load_found(const Environment& environment, bool sizes_matter) const;
  Status missing_part(const study::StudyFiles& files) const;
  Status stdin_twice() const;
  Status add_imported(const Environment& environment, study::StudyFiles& files,
                      std::vector<yaml::Override>& overrides) const;

  /// The options beside STUDY.yaml and --set.
  static std::span<const std::pair<const char*, std::string StudyOptions::*>> parts();

  std::string study_, cluster_, model_, strategy_, import_, megatron_, communication_, measured_;
  std::vector<std::string> sets_;
};

/// --op: of what nccl-tests printed, where neither the text nor the file's name tells it.
void add_operation(Declaration& declaration, std::string& operation);
/// What --op says; empty: nothing.
std::string told_operation(const std::string& operation);

/// "path=value" -> Override.
/// \return kInvalidInput if there is no `=`.
Result<std::vector<yaml::Override>> overrides_of(const std::vector<std::string>& sets);

/// --format, one of `words`, the first by default.
void add_format(Declaration& declaration, std::string& format, std::vector<std::string> words);
/// -o, --output.
void add_output(Declaration& declaration, std::string& path);
/// --set.
void add_set(Declaration& declaration, std::vector<std::string>& sets);

}  // namespace foreshard::cli
