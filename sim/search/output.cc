// Writes a search's result (output.h), for `foreshard search`, `explain`, `replan` and the library.
#include "sim/search/output.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"
#include "base/yaml/describe.h"

#include "strategies/launch/abilities.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::launch {

const record::Record<Limitation>& record_of(const Limitation*) {
  static const auto record = record::Record<Limitation>("inability")
                                 .field("key", record::at<&Limitation::key>, "Key of the strategy.")
                                 .field("why", record::at<&Limitation::why>);
  return record;
}

}  // namespace foreshard::launch

namespace foreshard::search {
namespace {

using Json = nlohmann::ordered_json;
using record::Record;

void write_counts(Page& page, const SearchResult& result) {
  TextTable table({">", "<"});
  const auto add = [&](std::int64_t count, const std::string& what) {
    table.row(grouped(count), what);
  };
  add(result.considered, plural(result.considered, "strategy") + " considered");
  for (const auto& [key, count] : result.misfits)
    add(count, fmt::format("impossible: {}", misfit_text(key)));
  if (result.not_reached > 0) add(result.not_reached, "not looked at: " + result.ended_by());
  if (!result.whole_space) table.row("", "it ended before all were listed");
  if (result.unroutable > 0) add(result.unroutable, "cannot run: " + result.no_route);
  add(result.too_large,
      "need more memory than the devices of a stage have" +
          (result.memory_margin > 0 && !result.is_tight()
               ? fmt::format(" less the margin of {:.3g} %", 100 * result.memory_margin)
               : ""));
  add(result.slower, "may fit, but are slower by estimate");
  add(std::ssize(result.simulated), "simulated");
  page.table(table);
  if (result.shortage.empty() && result.most_devices >= result.devices) return;
  std::string text = fmt::format("\nRanks may run on {} {}", grouped(result.devices),
                                 plural(result.devices, "device"));
  if (!result.shortage.empty()) text += fmt::format(" ({})", result.shortage);
  if (result.most_devices < result.devices)
    text += fmt::format(". No strategy of this space uses more than {} of them",
                        grouped(result.most_devices));
  page.line(text + ".");
}

void write_sureness(Page& page, const SearchResult& result) {
  page.line(fmt::format(
      "\nThe estimate was {:+.1f} % to {:+.1f} % off the simulation over those {}.",
      100 * (result.lowest_ratio - 1), 100 * (result.highest_ratio - 1), result.simulated.size()));
  if (result.certified) {
    page.line(
        "Certified within the model: by its lower bound, no other of the strategies considered is "
        "simulated as faster. How near the model is to a machine, the intervals say.");
  } else if (result.best_bound) {
    page.line(fmt::format(
        "Not certified: {} of the {} that were not simulated are slower for certain within the "
        "model; no other can take less than {}, {:.1f} % below the best.",
        result.provably_slower, result.slower, format(*result.best_bound), 100 * result.gap()));
  }
  if (const auto count = result.overlapping(); count > 0) {
    page.line(fmt::format(
        "The intervals of the first ({}) and the next ({}) overlap, and those of {} of the {} "
        "simulated ones the first one's: a machine may order them otherwise.",
        interval_text(result.simulated[0]), interval_text(result.simulated[1]), count,
        result.simulated.size()));
  }
  if (const auto probability = result.first_beats_second())
    page.line(fmt::format(
        "As far as the intervals tell, the first beats the second on a machine with probability "
        "{:.0f} % (log-normal errors, independent of each other: shared ones make it surer).",
        100 * *probability));
  page.add(robustness_text(result));
  if (result.partial)
    page.line(fmt::format(
        "The search ended before it was through{}: this is the best of what it had looked at{}.",
        result.missing.empty() ? "" : " (" + result.missing + ")",
        result.certified ? "" : "; of the others nothing is known"));
}

// The values of a strategy that the framework has no option for. The space names them, or few
// strategies with them are tried in any case (limitation_in).
std::string inability_text(const Model& model, const Simulated& one) {
  std::vector<std::string> words;
  for (const launch::Limitation& cannot : launch::limitations_in(one.strategy, model))
    words.push_back(fmt::format("{}: {}", cannot.key, cannot.why));
  return words.empty() ? ""
                       : fmt::format("; {} CANNOT RUN IT ({})", one.strategy.framework->name,
                                     join(words, "; "));
}
// "tensor 2, ..., 3 devices idle, use: [node0]".
std::string described(const Simulated& one) {
  std::string text = in_words(one.strategy);
  if (one.idle > 0)
    text += fmt::format(", {} {} idle", grouped(one.idle), plural(one.idle, "device"));
  if (one.use.empty()) return text;
  constexpr std::size_t kMostNodes = 4;
  if (one.use.size() <= kMostNodes) return text + ", use: [" + join(one.use) + "]";
  return text + fmt::format(", use: {} nodes, {} to {} (--format json lists them)", one.use.size(),
                            one.use.front(), one.use.back());
}

void write_front(Page& page, const Model& model, const SearchResult& result) {
  if (std::ranges::count_if(result.simulated, &Simulated::on_front) < 2) return;
  page.line(fmt::format(
      "\nOf those simulated, none is better than these in time, memory and money at once{}:",
      result.is_priced ? " (money: rent of the devices used)"
                       : " (money: time of all devices used: not all have a price; give "
                         "cluster.rent, or the device's rent)"));
  TextTable table({">step", ">8 of 10 within", ">peak", ">money", "<"});
  for (const Simulated& one : result.simulated)
    if (one.on_front)
      table.row(format(one.step), interval_text(one), format(one.peak),
                result.is_priced ? fmt::format("{:.3g} USD", *one.rent_of_used / 1_USD)
                                 : fmt::format("{:.3g} dev s", one.device_time() / 1_s),
                described(one) + (one.tight ? "; TIGHT" : "") + inability_text(model, one));
  page.table(table);
}

// The first `top` strategies, and the fastest that the framework can run if it is not among them.
std::vector<Simulated> best_of(const SearchResult& result, std::int64_t top) {
  const auto first = top_of(result.simulated, top);
  std::vector<Simulated> best(first.begin(), first.end());
  if (result.runnable && *result.runnable >= best.size())
    best.push_back(result.simulated[*result.runnable]);
  return best;
}

// The number of the fastest strategy that the framework can run in the list of the best.
std::optional<std::int64_t> runnable_in_best(const SearchResult& result, std::int64_t top) {
  if (!result.runnable) return std::nullopt;
  return std::min(static_cast<std::int64_t>(*result.runnable), std::max<std::int64_t>(top, 0)) + 1;
}

std::string runnable_text(const SearchResult& result, const std::string& framework,
                          std::int64_t top) {
  if (!result.runnable) return {};
  const Simulated& one = result.simulated[*result.runnable];
  return fmt::format("\n{} can run number {}, {} slower than the first; {}.\n", framework,
                     *runnable_in_best(result, top),
                     format(one.step - result.simulated.front().step),
                     result.runnable_certified ? "no strategy with equal shares is faster"
                                               : "whether another is faster is not certain");
}

// The list of the best: each with its interval, and with what it does worse than the first.
void write_best(Page& page, const Model& model, std::span<const Simulated> best) {
  TextTable table(
      {">", ">step", ">TFLOP/s", ">headroom", "<strategy; what costs most beside compute"});
  for (std::size_t i = 0; i < best.size(); ++i) {
    const Simulated& one = best[i];
    const sim::BreakdownPart& first = sim::dominant(one.breakdown, false);
    std::string text = fmt::format("{}\n{}; compute {:.0f} %, {} {:.0f} %{}{}{}{}", described(one),
                                   interval_text(one), 100 * (one.breakdown.compute / one.step),
                                   first.label, 100 * (one.breakdown.*first.time / one.step),
                                   unmeasured_text(", {}", one.unmeasured),
                                   one.usd ? fmt::format(", {:.3g} USD", *one.usd / 1_USD) : "",
                                   !one.fits   ? "; DOES NOT FIT"
                                   : one.tight ? "; TIGHT"
                                               : "",
                                   inability_text(model, one));
    if (i > 0 && one.fits && best.front().fits) text += "\n" + difference_text(best.front(), one);
    table.row(i + 1, format(one.step), fmt::format("{:.1f}", one.tflops_per_device),
              format(one.headroom()), text);
  }
  page.table(table);
}

std::string hosts_text(const SearchResult& result) {
  if (!result.tried_hosts) return {};
  if (result.no_hosts.empty())
    return "With optimizer states and activations on hosts nothing fits either.\n";
  return fmt::format("Whether it would with optimizer states on hosts is not known: {}.\n",
                     result.no_hosts);
}

std::string nothing_fits_text(const SearchResult& result) {
  if (result.partial && result.simulated.empty())
    return "\nThe time was over before a strategy that fits was found: give --budget more.\n";
  if (result.slower > 0)
    return fmt::format(
        "\nNone of the {} that were simulated fits; {} more might: give --simulate and --certify "
        "more{}.\n",
        result.simulated.size(), result.slower, result.partial ? " and --budget" : "");
  if (!result.nearest) return fmt::format("\nNothing can run: {}.\n", result.no_route);
  const Estimate& needs = result.nearest->estimate;
  std::string text = "\nNothing fits. The one";
  if (result.unroutable > 0)
    text = fmt::format("\n{} cannot run: {}.\nOf the others, nothing fits. The one",
                       grouped(result.unroutable), result.no_route);
  return text + fmt::format(
                    " that misses least needs {} on stage {}, {} more than the {} that a "
                    "device there has for it:\n"
                    "  {}\n"
                    "Devices with {}, or more of them, would do; so would a shorter sequence.\n{}",
                    format(needs.peak), needs.stage, format(needs.peak - needs.memory),
                    format(needs.memory), in_words(result.nearest->strategy),
                    format(needs.peak + reserve_of(result.nearest->strategy)), hosts_text(result));
}

// A strategy in the list of a result.
struct Listed : Simulated {
  std::size_t rank = 0;   // among all simulated ones; the first has 1
  sim::Breakdown behind;  // how much longer each part is than in the first one
  std::vector<launch::Limitation> cannot;
};

// \param model  null if nobody asks what the framework cannot run.
std::vector<Listed> all_listed(const SearchResult& result, std::int64_t top, const Model* model) {
  std::vector<Listed> all;
  for (const Simulated& one : best_of(result, top)) {
    Listed& listed = all.emplace_back(Listed{one, all.size() + 1, {}, {}});
    if (std::ssize(all) > top) listed.rank = *result.runnable + 1;
    for (const sim::BreakdownPart& part : sim::kBreakdownParts)
      listed.behind.*part.time =
          one.breakdown.*part.time - result.simulated.front().breakdown.*part.time;
    if (model != nullptr) listed.cannot = launch::limitations_in(one.strategy, *model);
  }
  return all;
}

const Record<Listed>& record_of(const Listed*) {
  static const auto record =
      Record<Listed>("listed_strategy")
          .field("rank", &Listed::rank, "Among all that were simulated, the fastest first.")
          .field("words", described, "For people.")
          .field("strategy", &Simulated::strategy)
          .field("use", &Simulated::use, "Nodes and devices; empty: same as the study's.")
          .field("idle_devices", &Simulated::idle)
          .field("time_s", &Simulated::step)
          .field("low_s", &Simulated::low)
          .field("high_s", &Simulated::high)
          .field("evidence", &Simulated::unmeasured)
          .field("estimate_s", record::at<&Simulated::estimate, &Estimate::step>)
          .field("bound_s", record::at<&Simulated::estimate, &Estimate::bound>)
          .field("mfu", &Simulated::mfu)
          .field("model_tflops_per_gpu", &Simulated::tflops_per_device)
          .field("fits", &Simulated::fits)
          .field("framework_cannot", &Listed::cannot, "What the framework has no option for.")
          .field("tight", &Simulated::tight, "It fits and leaves less than the margin.")
          .field("usd_per_step", &Simulated::usd)
          .field("joules_per_step", &Simulated::energy)
          .field("peak_bytes", &Simulated::peak)
          .field("headroom_bytes", &Simulated::headroom)
          .field("behind_s", &Listed::behind, "How much longer each part is than in the first.")
          .field("dominant", dominant_of(true), "Key of the largest part of the step.")
          .field("dominant_overhead", dominant_of(false), "Key of the largest one but compute.")
          .field("breakdown_s", &Simulated::breakdown);
  return record;
}

using Ratios = std::vector<std::pair<std::string, double>>;
std::optional<Ratios> ratios_of(const SearchReport& report) {
  const SearchResult& result = *report.result;
  if (result.simulated.empty()) return std::nullopt;
  return Ratios{{"low", result.lowest_ratio}, {"high", result.highest_ratio}};
}

std::optional<double> gap_of(const SearchReport& report) {
  const SearchResult& result = *report.result;
  const bool is_bounded = result.has_answer() && (result.certified || result.best_bound);
  return is_bounded ? std::optional(result.gap()) : std::nullopt;
}

std::vector<Simulated> front_of(const SearchReport& report) {
  std::vector<Simulated> front;
  std::ranges::copy_if(report.result->simulated, std::back_inserter(front), &Simulated::on_front);
  return front;
}

template <auto... kMembers>  // NOLINTNEXTLINE(readability-identifier-naming): called as a function
constexpr auto in_result = record::at<&SearchReport::result, kMembers...>;
template <auto... kMembers>  // NOLINTNEXTLINE(readability-identifier-naming): called as a function
constexpr auto in_study = record::at<&SearchReport::study, kMembers...>;

}  // namespace

std::string robustness_text(const SearchResult& result) {
  const Robustness& of = result.robustness;
  if (of.draws == 0) return {};
  std::string text = fmt::format(
      "With parameters drawn from their errors, the first is the fastest of the best {} in {} of "
      "{} draws; with one of its devices slower by a fifth",
      of.firsts.size(), of.firsts.front(), of.draws);
  text += of.beside_slow == 0 ? std::string(" it stays the first.\n")
                              : fmt::format(", number {} is.\n", of.beside_slow + 1);
  if (!of.holds())
    text += "So the choice HOLDS ONLY AT THE POINT ESTIMATE: measure the first few.\n";
  return text;
}

std::string unmeasured_text(const char* form, const study::Unmeasured& unmeasured) {
  constexpr double kLeastShown = 0.005;
  if (unmeasured.share < kLeastShown) return "";
  return fmt::format(fmt::runtime(form),
                     fmt::format("{:.0f} % unmeasured", 100 * unmeasured.share));
}

std::string why_not_text(const WhyNot& why) {
  return fmt::format("\nWhy not {}: {}; {}{}{}.\n", why.asked, why.message,
                     why.in_space ? "it is in the space that was searched"
                                  : "it is not in the space that was searched",
                     why.cause == WhyNot::Cause::kNothing
                         ? ""
                         : fmt::format(", and lost by its {}", yaml::name_of(why.cause)),
                     why.remedy.empty() ? "" : ". To win, " + why.remedy);
}

std::string difference_text(const Simulated& first, const Simulated& one) {
  constexpr std::size_t kMostParts = 3;
  constexpr double kLeast = 0.02;  // share of the difference, or of the first one's step
  std::vector<std::pair<Seconds, std::string_view>> parts;
  parts.reserve(std::size(sim::kBreakdownParts));
  for (const sim::BreakdownPart& part : sim::kBreakdownParts)
    parts.emplace_back(one.breakdown.*part.time - first.breakdown.*part.time, part.label);
  const auto size = [](Seconds time) { return std::max(time, -time); };
  std::ranges::stable_sort(parts, std::greater(),
                           [&](const auto& part) { return size(part.first); });
  const Seconds behind = one.step - first.step;
  std::vector<std::string> words;
  for (const auto& [time, label] : parts) {
    const bool is_small = size(time) < kLeast * std::max(size(behind), 0.01 * first.step);
    if (words.size() < kMostParts && !is_small)
      words.push_back(
          fmt::format("{} {}{}", label, time < Seconds{} ? "-" : "+", format(size(time))));
  }
  return fmt::format("{} behind{}{}", format(behind), words.empty() ? "" : ": ", join(words));
}

std::string remedy_text(const Simulated& first, const Simulated& one) {
  const auto more = [&](const sim::BreakdownPart& part) {
    return one.breakdown.*part.time - first.breakdown.*part.time;
  };
  const sim::BreakdownPart& most = *std::ranges::max_element(sim::kBreakdownParts, {}, more);
  const Seconds behind = one.step - first.step;
  if (more(most) < behind)
    return fmt::format("it would have to be {} faster, in more than one term", format(behind));
  return fmt::format("it would have to lose {} of the {} that its {} takes more", format(behind),
                     format(more(most)), most.label);
}

std::string missing_text(const Nearest& nearest) {
  const Estimate& needs = nearest.estimate;
  return fmt::format("{} needs {} on stage {}, {} more than the {} that a device there has for it",
                     in_words(nearest.strategy), format(needs.peak), needs.stage,
                     format(needs.peak - needs.memory), format(needs.memory));
}

std::string nothing_suits(const SearchResult& result) {
  std::string text = fmt::format("none of {} combinations suits this model, batch and {} {}",
                                 grouped(result.considered), grouped(result.devices),
                                 plural(result.devices, "device"));
  if (!result.shortage.empty()) text += fmt::format(" ({})", result.shortage);
  if (result.considered == 0) return text + ": no sizes of the space can be put on so many devices";
  for (const auto& [key, count] : result.misfits)
    text += fmt::format("{} {}: {}", key == result.misfits.begin()->first ? ":" : ";",
                        grouped(count), misfit_text(key));
  return text;
}

std::vector<yaml::Override> settings_of(const Simulated& one) {
  std::vector<yaml::Override> settings;
  const Json strategy = knobs_of(one.strategy);
  for (const auto& [key, value] : strategy.items())
    settings.push_back(
        {"strategy." + key, value.is_string() ? value.get<std::string>() : value.dump()});
  if (!one.use.empty()) settings.push_back({"use", Json(one.use).dump()});
  return settings;
}

std::string tight_text(const SearchResult& result) {
  if (!result.is_tight()) return "";
  return fmt::format(
      "TIGHT: nothing leaves the margin of {:.3g} % of a device's memory ({}).\n"
      "What follows may run out of memory.\n\n",
      100 * result.memory_margin, result.margin_source);
}

std::string needs_hosts_text(const SearchResult& result) {
  return result.needs_hosts()
             ? "\nNothing fits without the memory of hosts. As little is there as makes a strategy "
               "fit; whether hosts have so much is not looked at.\n"
             : "";
}

std::string search_text(const study::LoadedStudy& study, const SearchResult& result,
                        std::int64_t top, const Paper& paper) {
  Page page(paper);
  page.line(fmt::format("{} on {}, batch of {}, {}\n", study.model.name, study.cluster.name,
                        grouped(study.strategy.global_batch), study.strategy.framework->name));
  page.add(tight_text(result));
  write_counts(page, result);
  page.add(needs_hosts_text(result));
  const auto best = best_of(result, top);
  if (!best.empty()) {
    page.add(evidence_lines(std::span(best), "strategy"));
    write_best(page, study.model, best);
    page.add(runnable_text(result, study.strategy.framework->name, top));
    if (best.front().fits) {
      write_front(page, study.model, result);
      write_sureness(page, result);
    }
  }
  if (best.empty() || !best.front().fits) page.add(nothing_fits_text(result));
  if (result.why_not) page.add(why_not_text(*result.why_not));
  return std::move(page).take();
}

// As a member of the front.
const Record<Simulated>& record_of(const Simulated*) {
  static const auto record =
      Record<Simulated>("front_strategy")
          .field("words", described, "For people.")
          .field("strategy", &Simulated::strategy)
          .field("use", &Simulated::use)
          .field("devices", [](const Simulated& one) { return one.devices.size(); })
          .field("time_s", &Simulated::step)
          .field("low_s", &Simulated::low)
          .field("high_s", &Simulated::high)
          .field("evidence", &Simulated::unmeasured)
          .field("peak_bytes", &Simulated::peak)
          .field("tight", &Simulated::tight)
          .field("usd_of_devices_per_step", &Simulated::rent_of_used,
                 "Rent of the devices that are used, or what is written off of their price.");
  return record;
}

const Record<Nearest>& record_of(const Nearest*) {
  static const auto record =
      Record<Nearest>("nearest")
          .field("strategy", &Nearest::strategy)
          .field("peak_bytes", record::at<&Nearest::estimate, &Estimate::peak>)
          .field("capacity_bytes",
                 [](const Nearest& of) { return of.estimate.memory + reserve_of(of.strategy); })
          .field("reserve_bytes", record::at<&Nearest::strategy, reserve_of>,
                 "What the device keeps for itself.")
          .field("missing_bytes",
                 [](const Nearest& of) { return of.estimate.peak - of.estimate.memory; });
  return record;
}

const Record<SearchReport>& record_of(const SearchReport*) {
  using Report = SearchReport;
  using Of = SearchResult;
  using study::LoadedStudy;
  static const auto record =
      Record<Report>::result("foreshard.search/1",
                             "The strategies that `search` found, the fastest first.")
          .field("model", in_study<&LoadedStudy::model, &Model::name>)
          .field("cluster", in_study<&LoadedStudy::cluster, &ClusterConfig::name>)
          .field("global_batch", in_study<&LoadedStudy::strategy, &Strategy::global_batch>)
          .field("framework", [](const Report& of) { return of.study->strategy.framework->name; })
          .field("considered", in_result<&Of::considered>, "Combinations of sizes and cuts.")
          .field("not_reached", in_result<&Of::not_reached>, "Left out by the time limit.")
          .field("whole_space", in_result<&Of::whole_space>, "Whether all were counted in time.")
          .field("misfits", in_result<&Of::misfits>, "Forbidden ones, by the key at fault.")
          .field("too_large", in_result<&Of::too_large>, "Too large for memory, by estimate.")
          .field("unroutable", in_result<&Of::unroutable>)
          .field("simulated", [](const Report& of) { return of.result->simulated.size(); })
          .field("slower_by_estimate", in_result<&Of::slower>)
          .field("slower_by_bound", in_result<&Of::provably_slower>, "Certain within the model.")
          .field("devices", in_result<&Of::devices>)
          .field("most_devices_used", in_result<&Of::most_devices>)
          .field("shortage", in_result<&Of::shortage>, "Why not all devices are used.")
          .field("estimate_over_simulated", ratios_of)
          .field("best_bound_s", in_result<&Of::best_bound>, "Lower bound of those not simulated.")
          .field("gap", gap_of, "How far that bound is below the best, 0 to 1.")
          .field("certified", in_result<&Of::certified>, kCertified)
          .field("certified_within",
                 [](const Report& of) {
                   return gap_of(of) ? std::optional<std::string>("the model") : std::nullopt;
                 })
          .field("overlapping_the_best", in_result<&Of::overlapping>, kOverlapping)
          .field("first_beats_second", in_result<&Of::first_beats_second>, kFirstBeatsSecond)
          .field("robustness", in_result<&Of::tested>)
          .field("why_not", in_result<&Of::why_not>)
          .field("needs_hosts", in_result<&Of::needs_hosts>, "Fits only with hosts, tried unasked.")
          .field("memory_margin", in_result<&Of::memory_margin>, "Part of memory to keep free.")
          .field("memory_margin_source", in_result<&Of::margin_source>)
          .field("tight", in_result<&Of::is_tight>, "Whether nothing that fits leaves the margin.")
          .field("partial", in_result<&Of::partial>, "Whether it ended before it was through.")
          .field("missing_resource", in_result<&Of::missing>,
                 "What the system gave no more of; else empty.")
          .field("nearest", in_result<&Of::nearest>, "The nearest to fitting, if nothing fits.")
          .field("best",
                 [](const Report& of) { return all_listed(*of.result, of.top, &of.study->model); })
          .field(
              "runnable", [](const Report& of) { return runnable_in_best(*of.result, of.top); },
              "Number in best of the fastest that the framework runs, if the first's unequal "
              "shares keep it from that.")
          .field(
              "runnable_certified",
              [](const Report& of) {
                return of.result->runnable ? std::optional(of.result->runnable_certified)
                                           : std::nullopt;
              },
              "Whether no strategy with equal shares is faster, within the model.")
          .field("front", front_of, "Best in time, memory and money at once.")
          .field("asked", &Report::asked);
  return record;
}

std::string search_json(const study::LoadedStudy& study, const SearchResult& result,
                        std::int64_t top, Asked asked) {
  asked.space = yaml::echo(result.space);
  asked.digests = digests_of(study);
  return record::text_of(record::write(SearchReport{&study, &result, top, std::move(asked)}), 1);
}

std::string search_csv(const SearchResult& result, std::int64_t top) {
  std::vector<record::Column> columns;
  for (const char* name : {"rank", "time_s", "estimate_s", "bound_s", "model_tflops_per_gpu", "mfu",
                           "peak_bytes", "headroom_bytes", "fits", "dominant_overhead"})
    columns.push_back({name});
  for (const auto& knob : record_of(static_cast<const Strategy*>(nullptr)).fields().fields)
    if (knob.key != "global_batch") columns.push_back({knob.key, "strategy/" + knob.key, " "});
  for (const char* name : {"low_s", "high_s", "idle_devices", "tight"}) columns.push_back({name});
  columns.push_back({"unmeasured_share", "evidence/unmeasured_share"});
  columns.push_back({"evidence", "evidence/remarks"});
  std::vector<Json> rows;
  for (const Listed& one : all_listed(result, top, nullptr)) rows.push_back(record::write(one));
  return record::csv(columns, rows);
}

}  // namespace foreshard::search
