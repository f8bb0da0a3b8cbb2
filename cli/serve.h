/// \file
/// Parts of `foreshard serve`: which settings its page has and takes, and the answers to them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/http/server.h"
#include "base/result.h"
#include "cli/command.h"
#include "cli/options.h"

#include "sim/page/controls.h"
#include "sim/study/study.h"

namespace foreshard::cli {

/// The controls of a study's page. What they are, what they may be and what is said about them
/// comes from the table of strategies (yaml_table) and the catalogue.
std::vector<page::ControlGroup> controls_of(const study::LoadedStudy& study,
                                            const Environment& environment);

/// The study's values of all keys that the page may set: key -> text, as --set takes it.
std::vector<std::pair<std::string, std::string>> values_of(const study::LoadedStudy& study);

/// Settings that a page asks for, as "KEY=VALUE". Of the strategy all keys are taken that name no
/// file, of the cluster those that have a control; names of the catalogue are the only ones.
/// \param asked  {"set": {KEY: VALUE, ...}}
/// \return kInvalidInput with the key.
Result<std::vector<std::string>> asked_settings(const nlohmann::ordered_json& asked,
                                                const std::vector<page::ControlGroup>& controls);

/// Answers the page's requests for one study.
class ServedStudy {
 public:
  /// Runs `work` on the thread for simulations when its turn has come, and waits for it.
  /// \return false if `is_gone` was true before it began.
  using InTurn =
      std::function<bool(const std::function<void()>& work, const std::function<bool()>& is_gone)>;

  ServedStudy(StudyOptions study, const Environment& environment, InTurn in_turn)
      : study_(std::move(study)), environment_(environment), in_turn_(std::move(in_turn)) {}
  /// Reads the study, whose name and controls the page has.
  /// \return errors of StudyOptions::load.
  Status load();

  http::Response answer(const http::Request& request) const;

 private:
  using Json = nlohmann::ordered_json;
  struct Question {
    std::vector<std::string> sets;
    std::function<bool()> is_gone;
  };
  Result<Question> question_of(const http::Request& request) const;
  Result<study::LoadedStudy> loaded(const std::vector<std::string>& sets) const;
  Result<std::string> simulated(const Question& question, bool pictures) const;
  Result<std::string> yaml(const Question& question) const;
  Result<std::string> command(const Question& question) const;
  void search(const Question& question, http::Events& events) const;
  Result<Json> found(const std::string& json) const;
  http::Response in_turn(const Question& question,
                         const std::function<Result<std::string>()>& work) const;

  StudyOptions study_;
  const Environment& environment_;
  InTurn in_turn_;
  std::string page_;
  std::vector<page::ControlGroup> controls_;
  std::vector<std::pair<std::string, std::string>> own_;
};

}  // namespace foreshard::cli
