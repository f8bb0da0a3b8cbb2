/// \file
/// Parts of `foreshard serve`: which settings its page has and takes, and the answers to them.
#pragma once

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http/server.h"
#include "base/result.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/turns.h"

#include "sim/page/controls.h"
#include "sim/study/study.h"

namespace foreshard::cli {

/// The controls of a study's page. What they are, what they may be and what is said about them
/// comes from the table of strategies (yaml_table) and the catalogue.
std::vector<page::ControlGroup> controls_of(const study::LoadedStudy& study,
                                            const Environment& environment);

/// The study's values of all keys that the page may set: key -> text, as --set takes it.
std::vector<std::pair<std::string, std::string>> values_of(const study::LoadedStudy& study);

/// Settings that a page asks for, as "KEY=VALUE". A page may set keys of a strategy that name no
/// file, and what has a control; the only names that it may give are names of the catalogue.
/// \param asked  {"set": {KEY: VALUE, ...}}
/// \return kInvalidInput with the key.
Result<std::vector<std::string>> asked_settings(const nlohmann::ordered_json& asked,
                                                const std::vector<page::ControlGroup>& controls);

/// Answers the page's requests for one study.
class ServedStudy {
 public:
  ServedStudy(StudyOptions study, const Environment& environment, Turns& turns)
      : study_(std::move(study)), environment_(environment), turns_(turns) {}
  /// Reads the study, whose name and controls the page has.
  /// \return errors of StudyOptions::load.
  Status load();

  http::Response answer(const http::Request& request);

 private:
  using Json = nlohmann::ordered_json;
  struct Question {
    std::vector<std::string> sets;
    Turns::Question turn;
  };
  Result<Question> question_of(const http::Request& request) const;
  std::string filling(const std::vector<std::string>& sets) const;
  Result<study::LoadedStudy> loaded(const std::vector<std::string>& sets) const;
  std::vector<std::pair<std::string, std::string>> own_values() const;
  // The answer to a change; remembered answers of the same inputs are given at once.
  Result<std::string> simulated(const Question& question);
  Result<std::string> predicted(const study::LoadedStudy& study) const;
  Result<std::string> pictures(const Question& question) const;
  Result<std::string> yaml(const Question& question) const;
  Result<std::string> command(const Question& question) const;
  void search(const Question& question, http::Events& events) const;
  Result<Json> found(const std::string& json) const;
  http::Response in_turn(const Question& question,
                         const std::function<Result<std::string>()>& work);

  StudyOptions study_;
  const Environment& environment_;
  Turns& turns_;
  std::string page_;
  std::vector<page::ControlGroup> controls_;
  std::vector<std::pair<std::string, std::string>> own_;
  std::deque<std::pair<std::string, std::string>> remembered_;  // Digest of the inputs -> answer.
};

}  // namespace foreshard::cli
