/// \file
/// Options that several commands have.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "cli/command.h"
#include "cli/declaration.h"

#include "sim/search/asked.h"
#include "sim/search/space.h"
#include "sim/study/study.h"

namespace foreshard::cli {

/// STUDY.yaml, --cluster, --model, --strategy, --import, --megatron, --communication, --measured
/// and --set.
class StudyOptions {
 public:
  void declare(Declaration& declaration);
  /// \param sizes_matter  same as StudyFiles::sizes_matter.
  Result<study::LoadedStudy> load(const Environment& environment, bool sizes_matter = true) const;
  /// Loads the study with additional `sets` ("KEY=VALUE") after its own and, unless `other` is
  /// empty, with the file or catalogue name `other` in place of STUDY.yaml.
  Result<study::LoadedStudy> load_other(const Environment& environment, const std::string& other,
                                        const std::vector<std::string>& sets,
                                        bool sizes_matter = true) const;
  /// Loads the study, which was loaded before, with more settings after its own (sim/advise). What
  /// was noted about it is not noted again.
  std::function<Result<study::LoadedStudy>(const std::vector<yaml::Override>& settings)> reload(
      const Environment& environment) const;
  /// The options that were given, from which another run can load the same study.
  search::Asked asked() const;
  /// The options for the result of asked().
  /// \return kInvalidInput for unknown options, and if a part came from stdin.
  static Result<StudyOptions> of(const search::Asked& asked);
  /// The options of a command line with this STUDY.yaml and these --set alone.
  static StudyOptions named(std::string study, std::vector<std::string> sets) {
    StudyOptions options;
    options.study_ = std::move(study);
    options.sets_ = std::move(sets);
    return options;
  }
  /// STUDY.yaml as given; empty if it was not given.
  const std::string& study() const { return study_; }
  /// The first option other than STUDY.yaml that was given, such as "--set"; empty if none was.
  std::string first_study_option() const;
  /// The options with the value of STUDY.yaml used as --cluster.
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

  /// All options except STUDY.yaml and --set.
  static std::span<const std::pair<const char*, std::string StudyOptions::*>> parts();

  std::string study_, cluster_, model_, strategy_, import_, megatron_, communication_, measured_;
  std::vector<std::string> sets_;
  bool tells_ = true;  // Notes what an imported file says.
};

/// What --space says: the space in a file, or in YAML in braces; the whole one if it is empty.
Result<search::SearchSpace> space_of(const std::string& given, const Environment& environment);

/// Adds --op, the operation of nccl-tests output whose text names none.
void add_operation(Declaration& declaration, std::string& operation);
/// The operation that --op says; empty: none.
std::string told_operation(const std::string& operation);

/// "path=value" -> Override.
/// \return kInvalidInput if there is no `=`.
Result<std::vector<yaml::Override>> overrides_of(const std::vector<std::string>& sets);

/// Adds --format, one of `words`; the first is the default.
void add_format(Declaration& declaration, std::string& format, std::vector<std::string> words);
/// Adds -o, --output.
void add_output(Declaration& declaration, std::string& path);
/// Adds --set.
void add_set(Declaration& declaration, std::vector<std::string>& sets);

}  // namespace foreshard::cli
