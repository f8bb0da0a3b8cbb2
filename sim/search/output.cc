#include "sim/search/output.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "base/csv.h"
#include "base/grouped.h"
#include "base/quantity.h"
#include "base/record/record.h"
#include "base/text.h"

#include "sim/study/records.h"
#include "strategies/launch/abilities.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {
namespace {

using Json = nlohmann::ordered_json;


std::span<const Simulated> top_of(const SearchResult& result, std::int64_t top) {
  return std::span(result.simulated)
      .first(std::min(result.simulated.size(),
                      static_cast<std::size_t>(std::max<std::int64_t>(top, 0))));
}

std::int64_t whole(Bytes bytes) {
  return std::llround(bytes.in_base());
}

std::string count_of(std::int64_t n, std::string_view what) {
  return fmt::format("  {:>9}  {}\n", grouped(n), what);
}

std::string misfits_text(const SearchResult& result) {
  std::string text;
  for (const auto& [key, count] : result.misfits)
    text += count_of(count, fmt::format("impossible: {}", misfit_text(key)));
  return text;
}

std::string counts_text(const SearchResult& result) {
  std::string text =
      count_of(result.considered, plural(result.considered, "strategy") + " considered") +
      misfits_text(result);
  if (result.not_reached > 0)
    text += count_of(result.not_reached, "not looked at: the time was over");
  if (!result.whole_space) text += "             the time was over before all were listed\n";
  if (result.unroutable > 0) text += count_of(result.unroutable, "cannot run: " + result.no_route);
  text += count_of(
      result.too_large,
      result.memory_margin > 0 && !result.is_tight()
          ? fmt::format(
                "need more memory than the devices of a stage have less the margin of {:.3g} %",
                100 * result.memory_margin)
          : "need more memory than the devices of a stage have");
  text += count_of(result.slower, "may fit, but are slower by estimate");
  text += count_of(std::ssize(result.simulated), "simulated");
  if (!result.shortage.empty() || result.most_devices < result.devices) {
    text += fmt::format("\nRanks may run on {} {}", grouped(result.devices),
                        plural(result.devices, "device"));
    if (!result.shortage.empty()) text += fmt::format(" ({})", result.shortage);
    text += result.most_devices < result.devices
                ? fmt::format(". No strategy of this space uses more than {} of them.\n",
                              grouped(result.most_devices))
                : ".\n";
  }
  return text;
}

std::string interval_text(const Simulated& one) {
  return fmt::format("{} to {}", format(one.low), format(one.high));
}

std::string sureness_text(const SearchResult& result) {
  std::string text = fmt::format(
      "\nThe estimate was {:+.1f} % to {:+.1f} % off the simulation over those {}.\n",
      100 * (result.lowest_ratio - 1), 100 * (result.highest_ratio - 1), result.simulated.size());
  if (result.certified) {
    text +=
        "Certified within the model: by its lower bound, no other of the strategies considered is\n"
        "simulated as faster. How near the model is to a machine, the intervals say.\n";
  } else if (result.best_bound) {
    text += fmt::format(
        "Not certified: {} of the {} that were not simulated are slower for certain within the\n"
        "model; no other can take less than {}, {:.1f} % below the best.\n",
        result.provably_slower, result.slower, format(*result.best_bound), 100 * result.gap());
  }
  if (const auto count = result.overlapping(); count > 0) {
    text += fmt::format(
        "The intervals of the first ({}) and the next ({}) overlap, and those of\n"
        "{} of the {} simulated ones the first one's: a machine may order them otherwise.\n",
        interval_text(result.simulated[0]), interval_text(result.simulated[1]), count,
        result.simulated.size());
  }
  if (const auto probability = result.first_beats_second())
    text += fmt::format(
        "As far as the intervals tell, the first beats the second on a machine with probability "
        "{:.0f} %\n(log-normal errors, independent of each other: shared ones make it surer).\n",
        100 * *probability);
  text += robustness_text(result);
  if (result.partial)
    text +=
        "The search ended before it was through: this is the best of what it had looked at; of "
        "the\n"
        "others nothing is known.\n";
  return text;
}

// "99 % unmeasured", for a strategy in the list.
std::string unmeasured_text(const Simulated& one) {
  constexpr double kLeastShown = 0.005;
  return one.unmeasured.share < kLeastShown
             ? ""
             : fmt::format(", {:.0f} % unmeasured", 100 * one.unmeasured.share);
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
Json inability_json(const Model& model, const Simulated& one) {
  Json list = Json::array();
  for (const launch::Limitation& cannot : launch::limitations_in(one.strategy, model))
    list.push_back({{"key", cannot.key}, {"why", cannot.why}});
  return list;
}

std::string evidence_of(std::span<const Simulated> best) {
  std::vector<const study::Unmeasured*> all;
  for (const Simulated& one : best) all.push_back(&one.unmeasured);
  const std::string text = study::evidence_text(all, "strategy");
  return text.empty() ? "" : "\n" + text;
}

// A value for a CSV cell; the entries of a list are separated by spaces.
std::string csv_of(const Json& value) {
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  std::vector<std::string> entries;
  for (const Json& entry : value) entries.push_back(csv_of(entry));
  return join(entries, " ");
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

// Breakdown key -> how much longer that part is than in the first strategy, in seconds.
Json behind_json(const Simulated& first, const Simulated& one) {
  Json behind = Json::object();
  for (const sim::BreakdownPart& part : sim::kBreakdownParts)
    behind[std::string(part.key)] =
        (one.breakdown.*part.time - first.breakdown.*part.time).in_base();
  return behind;
}

std::string front_text(const SearchResult& result) {
  std::string text;
  std::int64_t members = 0;
  for (const Simulated& one : result.simulated) {
    if (!one.on_front) continue;
    ++members;
    text += fmt::format("  {:>9} {:>20} {:>9} {:>11}  {}\n", format(one.step), interval_text(one),
                        format(one.peak),
                        result.is_priced ? fmt::format("{:.3g} USD", *one.rent_of_used / 1_USD)
                                         : fmt::format("{:.3g} dev s", one.device_time() / 1_s),
                        described(one) + (one.tight ? "; TIGHT" : ""));
  }
  if (members < 2) return {};
  return fmt::format(
             "\nOf those simulated, none is better than these in time, memory and money at "
             "once{}:\n"
             "  {:>9} {:>20} {:>9} {:>11}\n",
             result.is_priced ? " (money: rent of\nthe devices used)"
                              : " (money: time of all\ndevices used: not all have a price; give "
                                "cluster.rent, or the device's rent)",
             "step", "8 of 10 within", "peak", "money") +
         text;
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

}  // namespace

std::string robustness_text(const SearchResult& result) {
  const Robustness& of = result.robustness;
  if (of.draws == 0) return {};
  std::string text = fmt::format(
      "With parameters drawn from their errors, the first is the fastest of the best {} in {} of "
      "{} "
      "draws;\n",
      of.firsts.size(), of.firsts.front(), of.draws);
  text += of.beside_slow == 0
              ? std::string("with one of its devices slower by a fifth it stays the first.\n")
              : fmt::format("with one of its devices slower by a fifth, number {} is.\n",
                            of.beside_slow + 1);
  if (!of.holds())
    text += "So the choice HOLDS ONLY AT THE POINT ESTIMATE: measure the first few.\n";
  return text;
}

std::string why_not_text(const WhyNot& why) {
  return fmt::format("\nWhy not {}: {}; {}{}{}.\n", why.asked, why.message,
                     why.in_space ? "it is in the space that was searched"
                                  : "it is not in the space that was searched",
                     why.cause == WhyNot::Cause::kNothing
                         ? ""
                         : fmt::format(", and lost by its {}", name_of(why.cause)),
                     why.remedy.empty() ? "" : ". To win, " + why.remedy);
}

Json robustness_json(const SearchResult& result) {
  const Robustness& of = result.robustness;
  if (of.draws == 0) return nullptr;
  return {{"draws", of.draws},
          {"firsts", of.firsts},
          {"first_beside_slow_device", of.beside_slow + 1},
          {"holds", of.holds()}};
}

Json why_not_json(const WhyNot& why) {
  return {{"asked", why.asked},
          {"in_space", why.in_space},
          {"cause", name_of(why.cause)},
          {"message", why.message},
          {"remedy", why.remedy}};
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
      "TIGHT: nothing leaves the margin of {:.3g} % of a device's memory ({}).\nWhat follows may "
      "run "
      "out of memory.\n\n",
      100 * result.memory_margin, result.margin_source);
}

std::string needs_hosts_text(const SearchResult& result) {
  return result.needs_hosts()
             ? "\nNothing fits without the memory of hosts. As little is there as makes a strategy "
               "fit; whether\nhosts have so much is not looked at.\n"
             : "";
}

std::string search_text(const study::LoadedStudy& study, const SearchResult& result,
                        std::int64_t top) {
  std::string text =
      fmt::format("{} on {}, batch of {}, {}\n\n", study.model.name, study.cluster.name,
                  grouped(study.strategy.global_batch), study.strategy.framework->name);
  text += tight_text(result);
  text += counts_text(result);
  text += needs_hosts_text(result);
  const auto best = top_of(result, top);
  if (!best.empty()) {
    text += evidence_of(best);
    text += fmt::format("\n  {:>2}  {:>9} {:>9} {:>9}  {}\n", "", "step", "TFLOP/s", "headroom",
                        "strategy; what costs most beside compute");
    for (std::size_t i = 0; i < best.size(); ++i) {
      const Simulated& one = best[i];
      const sim::BreakdownPart& first = sim::dominant(one.breakdown, false);
      text += fmt::format(
          "  {:>2}  {:>9} {:>9.1f} {:>9}  {}\n  {:>36}{}; compute {:.0f} %, {} {:.0f} %{}\n", i + 1,
          format(one.step), one.tflops_per_device, format(one.headroom()), described(one), "",
          interval_text(one), 100 * (one.breakdown.compute / one.step), first.label,
          100 * (one.breakdown.*first.time / one.step),
          unmeasured_text(one) + (one.usd ? fmt::format(", {:.3g} USD", *one.usd / 1_USD) : "") +
              (!one.fits   ? "; DOES NOT FIT"
               : one.tight ? "; TIGHT"
                           : "") +
              inability_text(study.model, one));
      if (i > 0 && one.fits && best.front().fits)
        text += fmt::format("  {:>36}{}\n", "", difference_text(best.front(), one));
    }
    if (best.front().fits) text += front_text(result) + sureness_text(result);
  }
  if (best.empty() || !best.front().fits) text += nothing_fits_text(result);
  if (result.why_not) text += why_not_text(*result.why_not);
  return text;
}

std::string search_json(const study::LoadedStudy& study, const SearchResult& result,
                        std::int64_t top, const Asked& asked) {
  Json json = {{"schema", "foreshard.search/1"},
               {"model", study.model.name},
               {"cluster", study.cluster.name},
               {"global_batch", study.strategy.global_batch},
               {"framework", study.strategy.framework->name},
               {"considered", result.considered},
               {"not_reached", result.not_reached},
               {"whole_space", result.whole_space},
               {"misfits", Json::object()},
               {"too_large", result.too_large},
               {"unroutable", result.unroutable},
               {"simulated", result.simulated.size()},
               {"slower_by_estimate", result.slower},
               {"slower_by_bound", result.provably_slower},
               {"devices", result.devices},
               {"most_devices_used", result.most_devices},
               {"shortage", result.shortage},
               {"estimate_over_simulated", nullptr},
               {"best_bound_s", nullptr},
               {"gap", nullptr},
               {"certified", result.certified},
               {"certified_within", nullptr},
               {"overlapping_the_best", result.overlapping()},
               {"first_beats_second", nullptr},
               {"robustness", nullptr},
               {"why_not", nullptr},
               {"needs_hosts", result.needs_hosts()},
               {"memory_margin", result.memory_margin},
               {"memory_margin_source", result.margin_source},
               {"tight", result.is_tight()},
               {"partial", result.partial},
               {"nearest", nullptr},
               {"best", Json::array()},
               {"front", Json::array()},
               {"asked", asked_json(asked, study, &result.space)}};
  for (const auto& [key, count] : result.misfits) json["misfits"][key] = count;
  if (!result.simulated.empty())
    json["estimate_over_simulated"] = {{"low", result.lowest_ratio},
                                       {"high", result.highest_ratio}};
  if (!result.simulated.empty() && result.simulated.front().fits &&
      (result.certified || result.best_bound)) {
    json["gap"] = result.gap();
    json["certified_within"] = "the model";
  }
  if (const auto probability = result.first_beats_second())
    json["first_beats_second"] = *probability;
  json["robustness"] = robustness_json(result);
  if (result.why_not) json["why_not"] = why_not_json(*result.why_not);
  if (result.best_bound) json["best_bound_s"] = result.best_bound->in_base();
  if (result.nearest) {
    const Estimate& needs = result.nearest->estimate;
    const Bytes reserve = reserve_of(result.nearest->strategy);
    json["nearest"] = {{"strategy", knobs_of(result.nearest->strategy)},
                       {"peak_bytes", whole(needs.peak)},
                       {"capacity_bytes", whole(needs.memory + reserve)},
                       {"reserve_bytes", whole(reserve)},
                       {"missing_bytes", whole(needs.peak - needs.memory)}};
  }
  for (const Simulated& one : top_of(result, top)) {
    json["best"].push_back(
        {{"words", described(one)},
         {"strategy", knobs_of(one.strategy)},
         {"use", one.use},
         {"idle_devices", one.idle},
         {"time_s", one.step.in_base()},
         {"low_s", one.low.in_base()},
         {"high_s", one.high.in_base()},
         {"evidence", study::evidence_json(one.unmeasured)},
         {"estimate_s", one.estimate.step.in_base()},
         {"bound_s", one.estimate.bound.in_base()},
         {"mfu", one.mfu},
         {"model_tflops_per_gpu", one.tflops_per_device},
         {"fits", one.fits},
         {"framework_cannot", inability_json(study.model, one)},
         {"tight", one.tight},
         {"usd_per_step", one.usd ? Json(*one.usd / 1_USD) : Json(nullptr)},
         {"joules_per_step", one.energy ? Json(*one.energy / 1_J) : Json(nullptr)},
         {"peak_bytes", whole(one.peak)},
         {"headroom_bytes", whole(one.headroom())},
         {"behind_s", behind_json(result.simulated.front(), one)},
         {"dominant", sim::dominant(one.breakdown, true).key},
         {"dominant_overhead", sim::dominant(one.breakdown, false).key},
         {"breakdown_s", record::write(one.breakdown)}});
  }
  for (const Simulated& one : result.simulated)
    if (one.on_front)
      json["front"].push_back(
          {{"strategy", knobs_of(one.strategy)},
           {"use", one.use},
           {"devices", one.devices.size()},
           {"time_s", one.step.in_base()},
           {"low_s", one.low.in_base()},
           {"high_s", one.high.in_base()},
           {"evidence", study::evidence_json(one.unmeasured)},
           {"peak_bytes", whole(one.peak)},
           {"tight", one.tight},
           {"usd_of_devices_per_step",
            one.rent_of_used ? Json(*one.rent_of_used / 1_USD) : Json(nullptr)}});
  return json.dump(1, ' ') + "\n";
}

std::string search_csv(const SearchResult& result, std::int64_t top) {
  std::string text =
      "rank,time_s,estimate_s,bound_s,model_tflops_per_gpu,mfu,peak_bytes,headroom_bytes,fits,"
      "dominant_overhead";
  const auto varies = [](const std::string& key) { return key != "global_batch"; };
  Strategy everything;  // it has every knob
  everything.offload_parameters = true;
  const Json columns = knobs_of(everything);
  for (const auto& [key, value] : columns.items())
    if (varies(key)) text += "," + key;
  text += ",low_s,high_s,idle_devices,tight,unmeasured_share,evidence\n";
  std::int64_t rank = 0;
  for (const Simulated& one : top_of(result, top)) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}", ++rank, one.step.in_base(),
                        one.estimate.step.in_base(), one.estimate.bound.in_base(),
                        one.tflops_per_device, one.mfu, whole(one.peak), whole(one.headroom()),
                        one.fits, sim::dominant(one.breakdown, false).key);
    const Json knobs = knobs_of(one.strategy);
    for (const auto& [key, value] : columns.items())
      if (varies(key)) text += "," + (knobs.contains(key) ? csv_of(knobs[key]) : "");
    text +=
        fmt::format(",{},{},{},{},{},{}\n", one.low.in_base(), one.high.in_base(), one.idle,
                    one.tight, one.unmeasured.share, csv_field(join(one.unmeasured.remarks, "; ")));
  }
  return text;
}

}  // namespace foreshard::search
